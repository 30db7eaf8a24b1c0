# Exported from notebooks/05_jaxpr.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: programs. Home: 05_jaxpr. In JAX: jax/_src/core.py (Jaxpr and its printer and checker).

A jaxpr is a program written down: typed variables, one primitive an equation, no side effects and no
control flow but what primitives contain.
"""

import numpy as np

from minijax.array import Array
from minijax.avals import typeof
from minijax.core import Tracer, rule_for, swap_source
from minijax.errors import JaxprTypeError as JaxprTypeError

__all__ = [
    "JaxprTypeError", "Var", "Literal", "is_literable", "JaxprEqn", "Jaxpr", "ClosedJaxpr",
    "jaxprs_in_params", "inner_effects", "open_jaxpr", "eval_jaxpr", "last_reads", "jaxpr_as_fun",
    "as_function", "Names", "encode_name", "WIDTH", "jaxpr_lines", "eqn_lines", "printed_params",
    "name_as_outside", "param_lines", "short_or_long", "param_text", "check_jaxpr", "bind_var",
    "check_atom", "check_eqn", "dce_jaxpr", "inputs_read", "variables_read",
    "convert_constvars_jaxpr",
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
        return "\n".join(eqn_lines(self, Names(), set(self.outvars)))


class Jaxpr:
    """{ lambda constvars ; invars. let eqns in outvars }: a program, compared by identity."""

    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "name", "memos", "__weakref__")

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
        return "\n".join(short_or_long(self, Names(), WIDTH))

    def pretty_print(self):
        return repr(self)


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

    def __repr__(self):
        return repr(self.jaxpr)

    def pretty_print(self):
        return repr(self)


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
        self.count = 0

    def __call__(self, atom):
        if isinstance(atom, Literal):
            return f"{np.asarray(atom.val)[()]}:{atom.aval.str_short()}"
        if atom not in self.names:
            self.names[atom] = encode_name(self.count)
            self.count += 1
        return self.names[atom]

    def typed(self, var):
        return f"{self(var)}:{var.aval.str_short()}"

    def alias(self, inner, outer):
        """Print a variable of an inner program under the name that it has outside."""
        if isinstance(outer, Var):
            self.names[inner] = self(outer)


def encode_name(n):
    name = chr(97 + n % 26)
    return name if n < 26 else encode_name(n // 26) + name


WIDTH = 80


def jaxpr_lines(jaxpr, names):
    """The lines of `{ lambda consts ; inputs. let equations in (outputs,) }`."""
    jaxpr = open_jaxpr(jaxpr)
    consts, inputs = (" ".join(map(names.typed, vs)) for vs in (jaxpr.constvars, jaxpr.invars))
    head = f"{{ lambda {consts}; {inputs}. let"
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var)}
    read.update(v for v in jaxpr.outvars if isinstance(v, Var))
    body = ["    " + line for eqn in jaxpr.eqns for line in eqn_lines(eqn, names, read)]
    outs = ", ".join(map(names, jaxpr.outvars)) + "," * (len(jaxpr.outvars) == 1)
    return [head, *body, f"  in ({outs}) }}"]


def eqn_lines(eqn, names, read):
    """The lines of `c:f32[] = primitive[parameters] a b`; a result that nobody reads is `_`."""
    typed = [names.typed(v) if v in read else f"_:{v.aval.str_short()}" for v in eqn.outvars]
    lead = f"{' '.join(typed)} = {eqn.primitive.name}" if typed else eqn.primitive.name
    inputs = " ".join(["", *map(names, eqn.invars)])
    if eqn.primitive.name == "jit":
        name_as_outside(eqn, names)
    params = [param_lines(k, v, names) for k, v in printed_params(eqn)]
    if not params:
        return [lead + inputs]
    flat = f"{lead}[{' '.join(p[0] for p in params)}]{inputs}"
    if len(flat) <= WIDTH and all(len(p) == 1 for p in params):
        return [flat]
    return [f"{lead}[", *("  " + line for p in params for line in p), f"]{inputs}"]


def printed_params(eqn):
    """Parameters in alphabetical order, `name` first, without those at their usual value."""
    usual = eqn.primitive.usual_params
    shown = [(k, v) for k, v in eqn.params.items() if not (k in usual and usual[k] == v)]
    if "call_jaxpr" in eqn.params:
        shown.append(("name", open_jaxpr(eqn.params["call_jaxpr"]).name))
    if eqn.primitive.name == "broadcast_in_dim" and not eqn.invars[0].aval.shape:
        shown = []                       # of a scalar: the result's type says it all
    return sorted(shown, key=lambda item: (item[0] != "name", item[0]))


def name_as_outside(eqn, names):
    inner = open_jaxpr(eqn.params["jaxpr"])
    for v, outer in zip(inner.invars, eqn.invars):
        names.alias(v, outer)
    for v, outer in zip(inner.outvars, eqn.outvars):
        if isinstance(v, Var) and v not in inner.invars and outer in names.names:
            names.alias(v, outer)


def param_lines(name, value, names):
    """The lines of `name=value`, where the value may be a program or a tuple of programs."""
    if isinstance(value, (Jaxpr, ClosedJaxpr)):
        first, *rest = short_or_long(value, names, WIDTH - 7 - len(name))
        return [f"{name}={first}", *rest]
    if isinstance(value, tuple) and any(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        lines = (line for v in value for line in short_or_long(v, names, WIDTH - 8))
        return [f"{name}=(", *("  " + line for line in lines), ")"]
    if name == "dimension_numbers" and type(value) is tuple:      # of dot_general: axes as lists
        value = tuple(tuple(list(axes) for axes in pair) for pair in value)
    return [f"{name}={param_text(value)}"]


def short_or_long(jaxpr, names, width):
    """The lines of a program: one, if each equation has one and all fit."""
    head, *eqns, tail = lines = jaxpr_lines(jaxpr, names)
    flat = " ".join([head, "; ".join(line.strip() for line in eqns), tail.strip()])
    fits = len(eqns) == len(open_jaxpr(jaxpr).eqns) and len(flat) <= width
    return [flat] if fits else lines


def param_text(value):
    if isinstance(value, np.dtype):
        return value.name
    return getattr(value, "__name__", None) or str(value)


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


def bind_var(env, var, where):
    if not isinstance(var, Var):
        raise JaxprTypeError(f"{where} {var!r} is not a variable")
    if var in env:
        raise JaxprTypeError(f"{where} {var!r} is bound twice")
    env.add(var)


def check_atom(env, atom, where):
    if isinstance(atom, Literal):
        if typeof(atom.val).strip_weak_type() != atom.aval.strip_weak_type():
            raise JaxprTypeError(f"{where}: literal {atom!r} is not of type {atom.aval}")
    elif atom not in env:
        raise JaxprTypeError(f"{where}: variable {atom!r} is used before it is bound")


def check_eqn(eqn, env):
    where = f"equation '{eqn}'"
    for atom in eqn.invars:
        check_atom(env, atom, where)
    for _, inner in jaxprs_in_params(eqn.params):
        check_jaxpr(inner)
    outs = rule_for(eqn.primitive, "abstract_eval")(*[a.aval for a in eqn.invars], **eqn.params)
    outs = outs if eqn.primitive.multiple_results else [outs]
    if len(outs) != len(eqn.outvars):
        raise JaxprTypeError(f"{where} binds {len(eqn.outvars)} results of {len(outs)}")
    for var, aval in zip(eqn.outvars, outs):
        if var.aval != aval:
            raise JaxprTypeError(f"{where}: {var!r} should have type {aval!r}")
        bind_var(env, var, where)


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
