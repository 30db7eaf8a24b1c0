"""Views of the package generated from its source: one primitive's block, one rule kind's column.

A primitive is one block of statements, and a chapter teaches one kind of rule. What is stored is
the first; the second is read off the syntax trees of the modules.
"""

import ast
import functools
import re
from pathlib import Path

import minijax
from minijax.core import RULE_KINDS, primitives as known

__all__ = ["rule_block", "rule_column", "Source", "modules_of_primitives"]

PACKAGE = Path(minijax.__file__).parent


class Source(str):
    """Python source to be read: a notebook shows it in colour."""

    def __repr__(self):
        return str(self)

    def _repr_markdown_(self):
        return f"```python\n{self}\n```"


class Module:
    """One file of the package: its lines and its statements at the top level."""

    def __init__(self, file):
        self.name = file.relative_to(PACKAGE.parent).as_posix()
        self.source = file.read_text()
        self.lines = self.source.splitlines()
        self.statements = ast.parse(self.source).body

    def text(self, node):
        """The source of a statement, with its decorators and with the comment right above it."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        while first > 1 and re.match(r"#(?! ---)", self.lines[first - 2]):
            first -= 1
        return "\n".join(self.lines[first - 1:node.end_lineno])


@functools.cache
def modules():
    files = sorted(f for f in PACKAGE.rglob("*.py") if "book" not in f.relative_to(PACKAGE).parts)
    return [Module(f) for f in files]


# --- One primitive's block ------------------------------------------------------------------------

def defined_primitive(node):
    """(variable, name) if a statement is like `variable_p = Primitive("name", …)`, else None."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args):
        return None
    target, first = node.targets[0], node.value.args[0]
    is_primitive = isinstance(target, ast.Name) and target.id.endswith("_p")
    return (target.id, first.value) if is_primitive and isinstance(first, ast.Constant) else None


@functools.cache
def homes():
    """{name of a primitive: (variable, module, position of its definition in the module)}."""
    return {found[1]: (found[0], module, i) for module in modules()
            for i, node in enumerate(module.statements) if (found := defined_primitive(node))}


def modules_of_primitives():
    """Names of the modules that define primitives, as they are imported."""
    paths = dict.fromkeys(module.name for _, module, _ in homes().values())
    return [path.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for path in paths]


def home_of(primitive):
    name = getattr(primitive, "name", primitive)
    if name not in homes():
        raise LookupError(f"no module of the package defines a primitive named {name!r}")
    return homes()[name]


def end_of_block(module, start):
    """The position of the first statement after the block: the next primitive or section."""
    for i in range(start + 1, len(module.statements)):
        node, previous = module.statements[i], module.statements[i - 1]
        between = module.lines[previous.end_lineno:node.lineno]
        if defined_primitive(node) or any(line.startswith("# ---") for line in between):
            return i
    return len(module.statements)


def rule_block(primitive):
    """The source of one primitive's block, from its definition to the next primitive's."""
    _, module, start = home_of(primitive)
    block = module.statements[start:end_of_block(module, start)]
    texts, previous = [f"# {module.name}"], None
    for node in block:
        gap = 0 if previous is None else min(node.lineno - previous.end_lineno - 1, 1)
        texts += [""] * bool(gap) + [module.text(node)]
        previous = node
    return Source("\n".join(texts))


# --- One rule kind's column -----------------------------------------------------------------------

def calls_in(node):
    """Names of functions and methods that a statement calls."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            yield getattr(inner.func, "id", getattr(inner.func, "attr", ""))


@functools.cache
def makers():
    """{name of a function that makes rules: the kinds it makes}, found by reading what it calls."""
    kinds = {f"def_{kind}": {kind} for kind in RULE_KINDS}
    functions = [node for module in modules() for node in module.statements
                 if isinstance(node, ast.FunctionDef) and node.args.args
                 and node.args.args[0].arg == "primitive"]
    for _ in range(3):                      # makers call makers, but not deeply
        for f in functions:
            made = set().union(*(kinds.get(name, set()) for name in calls_in(f)))
            if made:
                kinds[f.name] = kinds.get(f.name, set()) | made
    return kinds


def kinds_defined(node):
    """The kinds of rules that a statement gives to the primitives that it mentions."""
    if isinstance(node, ast.FunctionDef):
        decorators = [getattr(d, "attr", "") for d in node.decorator_list]
        return {name.removeprefix("def_") for name in decorators if name.startswith("def_")}
    if isinstance(node, (ast.Expr, ast.For)):
        return set().union(*(makers().get(name, set()) for name in calls_in(node)))
    return set()


def variables_defined(node):
    """Variables whose rules a statement may define: in a decorator, or anywhere in a call."""
    roots = node.decorator_list if isinstance(node, ast.FunctionDef) else [node]
    return {n.id for root in roots for n in ast.walk(root) if isinstance(n, ast.Name)}


@functools.cache
def rule_statements():
    """{(variable, kind): [source of each statement that defines such a rule]}."""
    found = {}
    for module in modules():
        for node in module.statements:
            for kind in kinds_defined(node):
                for variable in variables_defined(node):
                    found.setdefault((variable, kind), []).append(module.text(node))
    return found


def rule_column(kind, *primitives):
    """The source of every rule of one kind, or of those of the primitives named, in order."""
    if kind not in RULE_KINDS:
        raise ValueError(f"no rule kind {kind!r}; the kinds are {', '.join(RULE_KINDS)}")
    names = [getattr(p, "name", p) for p in primitives or known]
    sources = [source for name in names if name in homes()
               for source in rule_statements().get((homes()[name][0], kind), [])]
    return Source("\n".join(dict.fromkeys(sources)))
