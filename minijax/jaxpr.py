# Exported from notebooks/05_jaxpr.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: programs. Home: 05_jaxpr. In JAX: jax/_src/core.py (Jaxpr and its printer and checker).

A jaxpr is a program written down: typed variables, one primitive an equation, no side effects and
no control flow but what primitives contain.
"""

import collections
import re

import numpy as np

from minijax.array import Array
from minijax.avals import typeof
from minijax.core import Tracer, rule_for, swap_source
from minijax.errors import JaxprTypeError as JaxprTypeError
from minijax.pretty_printer import Break, Group, Indent, Text, join, layout

__all__ = [
    "JaxprTypeError", "Var", "Literal", "is_literable", "JaxprEqn", "Jaxpr", "ClosedJaxpr",
    "jaxprs_in_params", "inner_effects", "open_jaxpr", "eval_jaxpr", "last_reads", "jaxpr_as_fun",
    "as_function", "Names", "encode_name", "literal_text", "Printer", "in_brackets",
    "printed_params", "param_text", "shared_programs", "unique_name", "results_not_read",
    "check_jaxpr", "malformed", "bind_var", "check_atom", "check_eqn", "dce_jaxpr", "inputs_read",
    "variables_read", "convert_constvars_jaxpr",
]


# --- Variables, equations, programs ---------------------------------------------------------------

class Var:
    """A variable: it is itself, and has a type. Its name is chosen when a program is printed."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"Var(id={id(self)}):{self.aval.str_short(short_dtypes=False)}"


class Literal:
    """A scalar constant that stands in the equation itself."""

    __slots__ = ("val", "aval")
    __hash__ = None

    def __init__(self, val, aval):
        self.val, self.aval = val, aval

    def __repr__(self):
        return f"Literal({self.val})"


def is_literable(x):
    """Whether a constant is small enough to stand in an equation: a known scalar."""
    return not isinstance(x, Tracer) and np.ndim(x._value if type(x) is Array else x) == 0


class JaxprEqn:
    """outvars = primitive[params] invars; with its effects and the user's line it came from."""

    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "source_info")

    def __init__(self, invars, outvars, primitive, params, effects=frozenset(), source_info=None):
        self.invars, self.outvars = invars, outvars
        self.primitive, self.params = primitive, params
        self.effects, self.source_info = effects, source_info

    def replace(self, **changes):
        kept = {name: getattr(self, name) for name in self.__slots__}
        return JaxprEqn(**(kept | changes))

    def __repr__(self):
        return layout(Printer().equation(self)).rstrip()


class Jaxpr:
    """{ lambda constvars ; invars. let eqns in outvars }: a program, compared by identity."""

    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "name", "memos",
                 "__weakref__")

    def __init__(self, constvars, invars, outvars, eqns, effects=frozenset(), name=None):
        self.constvars, self.invars, self.outvars = constvars, invars, outvars
        self.eqns, self.effects, self.name = eqns, effects, name
        self.memos = {}           # what was made of this jaxpr is freed with it

    in_avals = property(lambda self: [v.aval for v in self.invars])
    out_avals = property(lambda self: [v.aval for v in self.outvars])

    def replace(self, **changes):
        kept = {name: getattr(self, name) for name in self.__slots__[:-2]}
        return Jaxpr(**(kept | changes))

    def __repr__(self):
        return self.pretty_print()

    def pretty_print(self, *, source_info=False, print_shapes=True, custom_pp_eqn_rules=True,
                     name_stack=False, print_effects=False, **options):
        """The text of the program, laid out with `options` (see `layout`).

        It may show where equations come from and their scopes, and leave out types of variables.
        Without `custom_pp_eqn_rules` all parameters stand in it, also those at their usual value.
        """
        printer = Printer(source_info, print_shapes, custom_pp_eqn_rules, name_stack, print_effects)
        return layout(printer.whole(self), **options)


class ClosedJaxpr:
    """A jaxpr together with the values of its constvars."""

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr, consts=()):
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"{len(jaxpr.constvars)} constvars, but {len(consts)} consts")
        self.jaxpr, self.consts = jaxpr, list(consts)

    eqns = property(lambda self: self.jaxpr.eqns)
    literals = property(lambda self: self.consts)
    effects = property(lambda self: self.jaxpr.effects)
    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)

    def replace(self, *, jaxpr=None, consts=None):
        return ClosedJaxpr(jaxpr or self.jaxpr, self.consts if consts is None else consts)

    def __repr__(self):
        return repr(self.jaxpr)

    def pretty_print(self, **options):
        """As Jaxpr.pretty_print."""
        return self.jaxpr.pretty_print(**options)


def jaxprs_in_params(params):
    """The programs among an equation's parameters, as (parameter name, jaxpr)."""
    for name, value in params.items():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, (Jaxpr, ClosedJaxpr)):
                yield name, item


def inner_effects(params):
    """What the programs among an equation's parameters do: its effects are theirs."""
    return frozenset().union(*[jaxpr.effects for _, jaxpr in jaxprs_in_params(params)])


def open_jaxpr(jaxpr):
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


# --- Evaluation -----------------------------------------------------------------------------------

def eval_jaxpr(jaxpr, consts, *args):
    """Run the program under the current trace: args -> list of results. JAX: core.eval_jaxpr."""
    env = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if type(atom) is Literal else env[atom]

    dying = last_reads(jaxpr)
    source = swap_source(None)
    try:
        for number, eqn in enumerate(jaxpr.eqns):
            swap_source(eqn.source_info or source)      # its line, not that of this call
            outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, outs, strict=True))
            else:
                env[eqn.outvars[0]] = outs
            for var in dying.get(number, ()):
                env.pop(var, None)               # its memory may be used again
    finally:
        swap_source(source)
    return [read(atom) for atom in jaxpr.outvars]


def last_reads(jaxpr):
    """number of an equation -> the variables that it is the last to read."""
    last = {v: number for number, eqn in enumerate(jaxpr.eqns)
            for v in eqn.invars if type(v) is Var}
    for atom in jaxpr.outvars:
        if type(atom) is Var:
            last.pop(atom, None)
    dying = {}
    for var, number in last.items():
        dying.setdefault(number, []).append(var)
    return dying


def jaxpr_as_fun(closed_jaxpr):
    """A function of the program's arguments that returns the list of its results."""
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def as_function(program):
    """The function that runs a closed jaxpr; a function stays what it is."""
    return jaxpr_as_fun(program) if isinstance(program, ClosedJaxpr) else program


# --- Printing -------------------------------------------------------------------------------------

class Names:
    """a, b, …, z, ba, bb, …: a name a variable, in the order in which the printer meets them."""

    def __init__(self):
        self.names = {}
        self.taken = set()            # names of programs
        self.count = 0

    def __call__(self, atom):
        if isinstance(atom, Literal):
            return f"{literal_text(atom)}:{atom.aval.str_short()}"
        if atom not in self.names:
            self.names[atom] = self.next_name()
        return self.names[atom]

    def next_name(self):
        name = encode_name(self.count)
        self.count += 1
        return self.next_name() if name in self.taken else name

    def typed(self, var):
        return f"{self(var)}:{var.aval.str_short()}"

    def drop(self, variables):
        """Results that nobody reads are printed as `_`."""
        self.names.update(dict.fromkeys(variables, "_"))

    def alias(self, inner, outer):
        """Print variables of an inner program under the names that they have outside."""
        seen = set()
        for v, like in zip(inner, outer):
            variables = isinstance(v, Var) and isinstance(like, Var)
            if variables and v not in self.names and like not in seen:
                self.names[v] = self(like)
                seen.add(like)


def encode_name(n):
    name = chr(97 + n % 26)
    return name if n < 26 else encode_name(n // 26) + name


def literal_text(literal):
    """The number; one that came from Python, weakly typed, without the digits of its rounding."""
    value = np.asarray(literal.val)[()]
    return str(value if literal.aval.weak_type else value.item())


class Printer(Names):
    """Makes documents of programs; options: those of `Jaxpr.pretty_print`. JAX: JaxprPpContext."""

    def __init__(self, source_info=False, print_shapes=True, custom_pp_eqn_rules=True,
                 name_stack=False, print_effects=False):
        super().__init__()
        self.source_info, self.name_stack = source_info, name_stack
        self.print_shapes, self.print_effects = print_shapes, print_effects
        self.brief = custom_pp_eqn_rules
        self.shared = {}              # program -> name, where it is printed beforehand

    def whole(self, jaxpr):
        """`let name = program in` for programs that occur twice or are long, and then `jaxpr`."""
        self.drop(results_not_read(jaxpr))
        self.shared = shared_programs(jaxpr)
        self.taken = set(self.shared.values())
        lets = [["let ", name, " = ", self.program(inner), " in", Break()]
                for inner, name in self.shared.items()]
        return [*lets, self.program(jaxpr)]

    def program(self, jaxpr):
        """`{ lambda consts ; inputs. let equations in (outputs,) }`"""
        consts, inputs = (self.variables(vs, typed=True) for vs in (jaxpr.constvars, jaxpr.invars))
        eqns = join(Break("; "), [self.equation(eqn) for eqn in jaxpr.eqns])
        outs = self.variables(jaxpr.outvars, separator=",")
        effects = f" : {{ {', '.join(map(str, jaxpr.effects))} }}" if self.print_effects else ""
        return Group([Indent([
            "{ ", Text("lambda ", "keyword"), consts, "; ", inputs, ". ", Text("let", "keyword"),
            Indent([Break(), eqns]), Break(), Text("in ", "keyword"),
            "(", outs, ")" if len(jaxpr.outvars) != 1 else ",)", effects]), " }"])

    def variables(self, atoms, typed=False, separator=""):
        docs = [[self(v), Text(f":{v.aval.str_short()}", "type")] if typed and self.print_shapes
                else self(v) for v in atoms]
        return docs if len(docs) == 1 else Indent(Group(join([separator, Group(Break())], docs)))

    def equation(self, eqn):
        """`c:f32[] = primitive[parameters] a b`"""
        if eqn.primitive.name == "jit":
            self.name_as_outside(open_jaxpr(eqn.params["jaxpr"]), eqn)
        place, scopes = eqn.source_info, getattr(eqn.source_info, "name_stack", "")
        results = [self.variables(eqn.outvars, typed=True),
                   Text(" = ", remark=place.summary() if place and self.source_info else "")]
        return [results if eqn.outvars else "",
                Text(eqn.primitive.name, remark=f"[{scopes}]" if self.name_stack else ""),
                self.parameters(eqn), " ", self.variables(eqn.invars)]

    def name_as_outside(self, inner, eqn):
        if inner not in self.shared:
            self.alias(inner.invars, eqn.invars)
            self.alias(inner.outvars, eqn.outvars)

    def parameters(self, eqn):
        params = printed_params(eqn) if self.brief else sorted(eqn.params.items())
        shown = [[f"{k}=", self.value(v)] for k, v in params]
        return in_brackets("[", shown, "]") if shown else ""

    def value(self, value):
        """The value of a parameter, which may be a program or a tuple of programs."""
        if isinstance(value, (Jaxpr, ClosedJaxpr)):
            inner = open_jaxpr(value)
            return self.shared.get(inner) or self.program(inner)
        if type(value) is tuple and {*map(type, value)} & {Jaxpr, ClosedJaxpr}:
            return in_brackets("(", [self.value(v) for v in value], ")")
        return param_text(value)


def in_brackets(left, docs, right):
    return Group([Indent([left, Break(""), join(Break(), docs)]), Break(""), right])


def printed_params(eqn):
    """Parameters in alphabetical order, `name` first, without those at their usual value."""
    usual = eqn.primitive.usual_params
    shown = {k: v for k, v in eqn.params.items() if not (k in usual and usual[k] == v)}
    if "call_jaxpr" in eqn.params:
        shown["name"] = open_jaxpr(eqn.params["call_jaxpr"]).name
    if eqn.primitive.name == "broadcast_in_dim":
        shown = {k: v for k, v in shown.items() if k == "broadcast_dimensions" and v}
    if eqn.primitive.name == "dot_general":
        pairs = shown["dimension_numbers"]
        shown["dimension_numbers"] = tuple(tuple(map(list, pair)) for pair in pairs)
    return sorted(shown.items(), key=lambda item: (item[0] != "name", item[0]))


def param_text(value):
    """A parameter as text: functions by their names, objects without their addresses."""
    text = getattr(value, "__name__", None) or str(value)
    return re.sub(r"(?<= at 0x)[0-9a-f]+", lambda address: "X" * len(address[0]), text)


def shared_programs(jaxpr):
    """program -> name, for those in `jaxpr` that occur twice or have more than ten equations."""
    counts, names, queue = collections.Counter(), {}, collections.deque([jaxpr])
    while queue:
        outer = queue.popleft()
        counts[outer] += 1
        for eqn in outer.eqns if counts[outer] <= 2 else ():      # then all in it occur twice too
            for _, inner in jaxprs_in_params(eqn.params):
                queue.append(open_jaxpr(inner))
                if "name" in eqn.params:
                    names.setdefault(open_jaxpr(inner), eqn.params["name"].strip("<>"))
    taken = collections.Counter()
    return {inner: unique_name(names.get(inner, "jaxpr"), taken)
            for inner, count in counts.items()
            if count > 1 or inner is not jaxpr and len(inner.eqns) > 10}


def unique_name(name, taken):
    """f, f1, f2, …: a name that was not given before."""
    count = taken[name]
    taken[name] += 1
    return name if count == 0 else unique_name(f"{name}{count}", taken)


def results_not_read(jaxpr):
    """The results of equations that no equation reads and that are no results of the program."""
    read = variables_read(jaxpr)
    return [v for eqn in jaxpr.eqns for v in eqn.outvars if v not in read]


# --- The type checker -----------------------------------------------------------------------------

def check_jaxpr(jaxpr):
    """Raise JaxprTypeError unless every variable is bound once, before use, at its type."""
    jaxpr = open_jaxpr(jaxpr)
    env = set()
    for var in [*jaxpr.constvars, *jaxpr.invars]:
        bind_var(env, var, "argument")
    for eqn in jaxpr.eqns:
        check_eqn(eqn, env)
    for atom in jaxpr.outvars:
        check_atom(env, atom, "result")


def malformed(where, what):
    """The error for "argument", "result" or an equation, which is printed only if there is one."""
    where = where if isinstance(where, str) else f"equation '{where}'"
    return JaxprTypeError(f"{where}{what}")


def bind_var(env, var, where):
    if not isinstance(var, Var):
        raise malformed(where, f" {var!r} is not a variable")
    if var in env:
        raise malformed(where, f" {var!r} is bound twice")
    env.add(var)


def check_atom(env, atom, where):
    if isinstance(atom, Literal):
        if typeof(atom.val).strip_weak_type() != atom.aval.strip_weak_type():
            raise malformed(where, f": literal {atom!r} is not of type {atom.aval}")
    elif atom not in env:
        raise malformed(where, f": variable {atom!r} is used before it is bound")


def check_eqn(eqn, env):
    for atom in eqn.invars:
        check_atom(env, atom, eqn)
    for _, inner in jaxprs_in_params(eqn.params):
        check_jaxpr(inner)
    outs = rule_for(eqn.primitive, "abstract_eval")(*[a.aval for a in eqn.invars], **eqn.params)
    outs = outs if eqn.primitive.multiple_results else [outs]
    if len(outs) != len(eqn.outvars):
        raise malformed(eqn, f" binds {len(eqn.outvars)} results of {len(outs)}")
    for var, aval in zip(eqn.outvars, outs):
        if var.aval != aval:
            raise malformed(eqn, f": {var!r} should have type {aval!r}")
        bind_var(env, var, eqn)


# --- Small transformations of programs ------------------------------------------------------------

def dce_jaxpr(jaxpr, used_outputs=None):
    """The program without equations whose results nobody reads (equations with effects stay)."""
    outvars = [v for i, v in enumerate(jaxpr.outvars) if used_outputs is None or used_outputs[i]]
    live = {v for v in outvars if isinstance(v, Var)}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in live for v in eqn.outvars]
        if eqn.effects or any(used):
            rule = None if all(used) else eqn.primitive.dce_rule
            eqns.append(eqn if rule is None else rule(eqn, tuple(used)))
            live.update(v for v in eqns[-1].invars if isinstance(v, Var))
    return jaxpr.replace(outvars=outvars, eqns=eqns[::-1])


def inputs_read(jaxpr):
    """For each argument, whether the program reads or returns it."""
    read = variables_read(jaxpr)
    return tuple([v in read for v in jaxpr.invars])


def variables_read(jaxpr):
    """The variables that the program's own equations read, or that it returns."""
    atoms = [*(v for eqn in jaxpr.eqns for v in eqn.invars), *jaxpr.outvars]
    return {v for v in atoms if isinstance(v, Var)}


def convert_constvars_jaxpr(jaxpr):
    """The program whose constvars have become its first arguments."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
