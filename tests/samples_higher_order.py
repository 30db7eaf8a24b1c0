"""Samples of the primitives that contain programs: name -> list of (args, params)."""
import numpy as np

from minijax.avals import typeof
from minijax.interpreters.batching import batch_flat
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.primitives.elementwise import add, cos, div, exp, lt, mul, sin, sub
from minijax.primitives.reductions import reduce_sum


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def program(f, *args):
    """The program of f, which returns a list, at the types of args."""
    return trace_to_closed_jaxpr(f, [typeof(a) for a in args], f.__name__)


def jit_sample(f, *args):
    return args, dict(jaxpr=program(f, *args), name=f.__name__, inline=False, donated_invars=())


def checkpoint_sample(f, *args, **changes):
    params = dict(jaxpr=program(f, *args).jaxpr, prevent_cse=True, differentiated=False, policy=None)
    return args, params | changes


def chain(x, y):
    return [mul(sin(x), y), reduce_sum(exp(mul(x, x)), (1,))]


def linear(x):
    return [add(x, mul(x, np.float32(3))), reduce_sum(x, (0,))]


def choosy(x, n, z):
    return [n, mul(x, z), x]


def custom_jvp_sample(f, *args):
    def rule(primals, tangents):
        return jvp_flat(f, primals, tangents)
    return args, dict(call_jaxpr=program(f, *args), jvp=rule, num_consts=0, symbolic_zeros=False)


def custom_vjp_sample(f, *args):
    def fwd(perturbed, *args):
        return f(*args), args, ()

    def bwd(memo, residuals, cts):
        raise AssertionError("bwd runs in reverse mode only")
    return args, dict(call_jaxpr=program(f, *args), fwd=fwd, bwd=bwd, num_consts=0,
                      symbolic_zeros=False)


def custom_vmap_sample(f, *args):
    def rule(axis, vals, dims):
        return batch_flat(f, axis, vals, dims)
    return args, dict(call=program(f, *args), rule=rule)


def linear_solve_sample(a, b):
    def product(a, b):
        return [mul(a, b)]

    def quotient(a, b):
        return [div(b, a)]
    times, solve = program(product, a, b), program(quotient, a, b)
    return (a, b), dict(matvec=times, vecmat=times, solve=solve, transpose_solve=solve, num_consts=1)


def linear_call_sample(r, x):
    def over(r, x):
        return [div(x, r), mul(x, r)]

    def back(r, s, t):
        return [add(div(s, r), mul(t, r))]
    callee = program(over, r, x)
    return (r, x), dict(callee=callee, transpose=program(back, r, x, x), num_res=1)


def custom_lin_sample(x, t):
    params = dict(bwd=lambda memo, residuals, cts: [mul(cts[0], residuals[0])], memo=(), num_res=1,
                  perturbed=(True,), out_avals=(typeof(t),))
    return (x, t), params


def cond_sample(branches, index, *args):
    return (np.int32(index), *args), dict(branches=tuple([program(f, *args) for f in branches]))


def product_and_sine(x, y):
    return [mul(exp(x), sin(y)), reduce_sum(x, (0,))]


def sine_and_zero(x, y):
    return [sin(add(x, y)), np.float32(0)]


def cosine_and_sum(x, y):
    return [cos(mul(x, x)), reduce_sum(mul(x, exp(y)), (0,))]


BRANCHES = [product_and_sine, sine_and_zero, cosine_and_sum]


def linear_branch(x):
    return [mul(x, np.float32(3)), reduce_sum(x, (0,))]


def other_linear_branch(x):
    return [add(x, x), np.float32(0)]


def while_sample(condition, body, cond_consts, body_consts, carries):
    params = dict(cond_jaxpr=program(condition, *cond_consts, *carries),
                  cond_nconsts=len(cond_consts), body_nconsts=len(body_consts),
                  body_jaxpr=program(body, *body_consts, *carries))
    return (*cond_consts, *body_consts, *carries), params


def below(limit, i, x):
    return [lt(i, limit)]


def counted_turn(scale, i, x):
    return [add(i, np.int32(1)), sin(mul(x, scale))]


def small(x):
    return [lt(reduce_sum(mul(x, x), (0,)), np.float32(20))]


def growing_turn(x):
    return [mul(x, add(np.float32(1.5), mul(x, x)))]


def scan_sample(body, consts, carries, rows, length, reverse=False, unroll=1):
    row_args = [x[0] if len(x) else np.zeros(x.shape[1:], x.dtype) for x in rows]
    params = dict(jaxpr=program(body, *consts, *carries, *row_args), length=length, unroll=unroll,
                  reverse=reverse, num_consts=len(consts), num_carry=len(carries))
    return (*consts, *carries, *rows), params


def recurrence(a, c, x):
    return [sin(add(mul(exp(a), c), x)), mul(exp(a), x)]


def counting(a, i, c, x):
    y = mul(sub(c, a), x)
    return [add(i, np.int32(1)), y, i, sin(y)]


def linear_turn(a, c, x):
    return [add(mul(c, np.float32(0.5)), x), add(a, x)]


def linear_in_rows(a, i, c, x):
    return [add(i, np.float32(1)), add(mul(c, i), x), mul(a, i)]


higher_order_samples = {
    "cond": [cond_sample(BRANCHES, 0, floats(3), floats(3, seed=1)),
             cond_sample(BRANCHES, 2, floats(3), floats(3, seed=1)),
             cond_sample([linear_branch, other_linear_branch], 1, floats(3))],
    "while": [while_sample(below, counted_turn, [np.int32(3)], [floats(seed=3)],
                           [np.int32(0), floats(2)]),
              while_sample(small, growing_turn, [], [], [floats(3, seed=2)]),
              while_sample(below, counted_turn, [np.int32(0)], [floats(seed=3)],
                           [np.int32(0), floats(2)])],
    "scan": [scan_sample(recurrence, [floats(2)], [floats(2, seed=1)], [floats(4, 2, seed=2)], 4),
             scan_sample(counting, [floats(2)], [np.int32(0), floats(2, seed=1)],
                         [floats(3, seed=2)], 3, reverse=True),
             scan_sample(linear_turn, [floats()], [floats(seed=1)], [floats(4, seed=2)], 4),
             scan_sample(linear_in_rows, [floats(2)], [floats(), floats(2, seed=1)],
                         [floats(3, 2, seed=2)], 3, unroll=2),
             scan_sample(linear_turn, [floats()], [floats(seed=1)], [floats(0)], 0)],
    "jit": [jit_sample(chain, floats(2, 3), floats(2, 3, seed=1)), jit_sample(linear, floats(2, 3)),
            jit_sample(choosy, floats(2), np.int32(3), floats(2, seed=1))],
    "remat2": [checkpoint_sample(chain, floats(2, 3), floats(2, 3, seed=1)),
               checkpoint_sample(linear, floats(2, 3), differentiated=True),
               checkpoint_sample(choosy, floats(2), np.int32(3), floats(2, seed=1),
                                 prevent_cse=(True, False, False)),
               checkpoint_sample(chain, floats(2, 3), floats(2, 3, seed=1),
                                 policy=lambda primitive, *_, **__: primitive.name == "sin")],
    "name": [([floats(2, 3)], {"name": "x"}), ([np.arange(3)], {"name": "n"})],
    "optimization_barrier": [([floats(2, 3)], {}), ([floats(2), np.int32(3), floats()], {})],
    "custom_jvp_call": [custom_jvp_sample(chain, floats(2, 3), floats(2, 3, seed=1)),
                        custom_jvp_sample(linear, floats(2, 3)),
                        custom_jvp_sample(choosy, floats(2), np.int32(3), floats(2, seed=1))],
    "custom_vjp_call": [custom_vjp_sample(chain, floats(2, 3), floats(2, 3, seed=1)),
                        custom_vjp_sample(linear, floats(2, 3))],
    "custom_lin": [custom_lin_sample(floats(3), floats(3, seed=1))],
    "custom_linear_solve": [linear_solve_sample(floats(3) + 3, floats(3, seed=1))],
    "linear_call": [linear_call_sample(floats(3) + 3, floats(3, seed=1))],
    "custom_vmap_call": [custom_vmap_sample(chain, floats(2, 3), floats(2, 3, seed=1)),
                         custom_vmap_sample(linear, floats(2, 3))],
}
