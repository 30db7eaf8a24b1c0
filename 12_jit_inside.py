# %% [markdown]
# # Solutions to chapter 12
#
# One way to solve each exercise of [a program inside a program](../12_jit_inside.ipynb).

# %%
import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.book.exercises import check
from minijax.jaxpr import jaxpr_as_fun

# %% [markdown]
# ## What is the key?
#
# Three: two weak floats (in either order, and with any values); a strong float32 beside a weak one; a weak int
# beside a weak float.

# %%
#| solution traces_of_h
traces_of_h = 3

# %%
#| check traces_of_h
with check("traces_of_h"):
    traced = []
    h = jax.jit(lambda d: (traced.append(1), d["a"] + d["b"])[1])
    h({"a": 1.0, "b": 2.0})
    h({"b": 2.0, "a": 1.0})
    h({"a": np.float32(1.0), "b": 2.0})
    h({"a": 1, "b": 2.0})
    h({"a": 3.0, "b": 4.0})
    assert traces_of_h == len(traced), (
        f"h should be traced {len(traced)} times: the order of a dict does not matter, nor do numbers; "
        "a NumPy float is not weakly typed, and an int is no float")

# %% [markdown]
# ## A cache of your own

# %%
#| solution my_jit
def my_jit(f):
    def wrapper(x):
        key = x.shape, x.dtype
        if key not in wrapper.table:
            wrapper.table[key] = jax.jit(jaxpr_as_fun(jax.make_jaxpr(f)(x)))
        return wrapper.table[key](x)[0]
    wrapper.table = {}
    return wrapper

# %%
#| check my_jit
with check("my_jit"):
    runs = []
    mine = my_jit(lambda x: (runs.append(1), jnp.cos(x) * 2.0)[1])
    for x in (jnp.zeros(3), jnp.ones(3), jnp.zeros(4), jnp.zeros(3, int)):
        assert np.allclose(mine(x), np.cos(np.asarray(x)) * 2, atol=1e-6), "the value should be 2 cos x"
    assert len(runs) == 3, f"three kinds of argument should be traced once each; f ran {len(runs)} times"
    assert len(mine.table) == 3, f"the table should have three entries, it has {len(mine.table)}"

# %% [markdown]
# ## An interpreter that counts compiled work

# %%
#| solution deep_count
def deep_count(closed_jaxpr):
    return sum(deep_count(eqn.params["jaxpr"]) if eqn.primitive.name == "jit" else 1
               for eqn in closed_jaxpr.eqns)

# %%
#| check deep_count
with check("deep_count"):
    inner = jax.jit(lambda x: jnp.sin(x) * 2.0)
    nested = jax.make_jaxpr(jax.jit(lambda x: inner(inner(x)) + 1.0))(1.0)
    assert deep_count(nested) == 5, f"sin, mul, sin, mul and add should count 5, got {deep_count(nested)}"
    flat = jax.make_jaxpr(lambda x: x * 2.0 + 1.0)(1.0)
    assert deep_count(flat) == 2, f"a program without jit should count its equations, 2; got {deep_count(flat)}"

# %% [markdown]
# ## Two to the depth
#
# $c(d) = 1 + 2\,c(d - 1)$ with $c(0) = 0$ is $2^d - 1$. With the memory it is $d$.

# %%
#| solution calls_without_memo
def calls_without_memo(d):
    return 0 if d == 0 else 1 + 2 * calls_without_memo(d - 1)

# %%
#| check calls_without_memo
with check("calls_without_memo"):
    assert calls_without_memo(1) == 1, "one program, nothing inside: one call"
    assert calls_without_memo(3) == 7, f"1 + 2 · (1 + 2 · 1) should be 7, got {calls_without_memo(3)}"
    assert calls_without_memo(20) == 2 ** 20 - 1, "the recursion c(d) = 1 + 2 c(d − 1) gives 2^d − 1"
