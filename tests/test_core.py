"""The machinery of the core: the current trace, tracers that got away, rules taken away and brought back."""

import threading

import numpy as np
import pytest

import minijax
import minijax.numpy
from minijax import core
from minijax.array import Array
from minijax.avals import ShapedArray, typeof
from minijax.book.traces import FlopTrace, LogTrace, count_flops
from minijax.core import Primitive, Trace, Tracer, eval_trace, forget, get_current_trace, set_current_trace
from minijax.errors import (ConcretizationTypeError, ImpossibleRuleError, TracerArrayConversionError,
                            TracerBoolConversionError, TracerIntegerConversionError,
                            UnexpectedTracerError)


@pytest.fixture
def double_p():
    """A primitive with the first two rules, which leaves no trace in the registry."""
    primitive = Primitive("double_for_tests")
    primitive.def_impl(lambda x: x + x)
    primitive.def_abstract_eval(lambda x: x)
    yield primitive
    del core.primitives[primitive.name]


class Echo(Trace):
    """Answers every question with the question."""

    def process_primitive(self, primitive, args, params):
        return primitive.name, args, params


class Unknown(Tracer):
    """A tracer without a value; it has no __init__, so that the line which makes it is its origin."""

    aval = property(lambda self: self._trace.aval)


class Known(Unknown):
    def to_concrete_value(self):
        return Array(np.full(self.aval.shape, 3, self.aval.dtype))


def unknown(shape=(), dtype=np.float32, cls=Unknown):
    trace = Echo("traced_function")
    trace.aval = ShapedArray(shape, np.dtype(dtype))
    return cls(trace)


# --- The current trace ----------------------------------------------------------------------------

def test_bind_asks_the_current_trace(double_p):
    with set_current_trace(Echo()):
        assert double_p.bind(1, k=2) == ("double_for_tests", (1,), {"k": 2})
    assert float(double_p.bind(1.5)) == 3.0


def test_nesting_restores_each_trace():
    outer, inner = Echo(), Echo()
    with set_current_trace(outer):
        with set_current_trace(inner):
            assert get_current_trace() is inner
        assert get_current_trace() is outer
    assert get_current_trace() is eval_trace


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_restores_the_trace(error):
    outer = Echo()
    with set_current_trace(outer):
        with pytest.raises(error):
            with set_current_trace(Echo()):
                raise error
        assert get_current_trace() is outer
    assert get_current_trace() is eval_trace


def test_axis_names_are_restored():
    with pytest.raises(ValueError):
        with core.extend_axis_env("i", 3), core.extend_axis_env(None, 4), core.extend_axis_env("j", 2):
            assert core.get_axis_env() == (("i", 3), ("j", 2))
            raise ValueError
    assert core.get_axis_env() == ()


def in_a_thread(f):
    results = []
    thread = threading.Thread(target=lambda: results.append(f()))
    thread.start()
    thread.join()
    return results[0]


def test_the_trace_is_thread_local():
    with set_current_trace(Echo()) as mine, core.extend_axis_env("i", 3):
        assert in_a_thread(get_current_trace) is eval_trace
        assert in_a_thread(core.get_axis_env) == ()
        assert get_current_trace() is mine


def test_two_threads_at_once(double_p):
    """Each thread sets its own trace while the other is inside its block."""
    both_inside, seen = threading.Barrier(2, timeout=10), {}

    def run(trace):
        with set_current_trace(trace):
            both_inside.wait()
            seen[trace] = get_current_trace() is trace and double_p.bind(1)[0] == double_p.name
            both_inside.wait()

    threads = [threading.Thread(target=run, args=(Echo(),)) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert list(seen.values()) == [True, True]


# --- Evaluation -----------------------------------------------------------------------------------

def test_evaluation_marks_weak_types(double_p):
    assert double_p.bind(2.0).weak_type and not double_p.bind(np.float32(2)).weak_type


def test_evaluation_without_abstract_eval_of_strong_operands(double_p):
    with forget("abstract_eval", double_p):
        assert double_p.bind(np.float32(2)).item() == 4
        with pytest.raises(NotImplementedError, match="abstract_eval"):
            double_p.bind(2.0)


@pytest.mark.filterwarnings("error")
def test_evaluation_shows_no_numpy_warnings(double_p):
    assert np.isinf(np.asarray(double_p.bind(np.float32(3e38))))
    with pytest.warns(RuntimeWarning):       # NumPy's own state is as it was
        np.float32(3e38) + np.float32(3e38)


def test_results_are_arrays(double_p):
    out = double_p.bind(np.arange(3, dtype=np.float32))
    assert type(out) is Array and not np.asarray(out).flags.writeable


def test_an_implementation_may_apply_primitives(double_p):
    double_p.def_impl(lambda x: np.asarray(lonely_p.bind(x)))
    lonely_p = Primitive("lonely_for_tests")
    try:
        lonely_p.def_impl(lambda x: x * 10)
        assert double_p.bind(np.float32(2)).item() == 20
    finally:
        del core.primitives[lonely_p.name]


def test_a_runtime_error_of_a_rule_goes_through(double_p):
    def raises(x):
        raise RuntimeError("out of luck")
    double_p.def_impl(raises)
    with pytest.raises(RuntimeError, match="out of luck"):
        double_p.bind(np.float32(1))


# --- Rules away and back --------------------------------------------------------------------------

def test_unknown_kind_of_rule():
    with pytest.raises(ValueError, match="no rule kind 'jpv'; the kinds are impl, "):
        forget("jpv")


def test_missing_and_impossible_rules(double_p):
    with pytest.raises(NotImplementedError) as missing:
        core.rule_for(double_p, "batch")
    assert type(missing.value) is NotImplementedError         # JAX's pages compare the type itself
    assert str(missing.value) == ("no batch rule for primitive 'double_for_tests'; "
                                  "add one with double_for_tests_p.def_batch(rule)")
    double_p.def_impossible("transpose", "it is a test")
    with pytest.raises(ImpossibleRuleError, match="can't have one: it is a test"):
        core.rule_for(double_p, "transpose")


def all_rules(kind):
    return {name: p.rules.get(kind) for name, p in core.primitives.items()}


@pytest.mark.parametrize("kind", core.RULE_KINDS)
def test_forget_takes_the_column_and_restore_brings_it_back(kind):
    before = all_rules(kind)
    column = forget(kind)
    assert set(all_rules(kind).values()) == {None}
    column.restore()
    assert all_rules(kind) == before


def test_forget_twice_and_restore_twice(double_p):
    impl = double_p.rules["impl"]
    forget("impl", double_p)
    column = forget("impl", double_p)        # as if its cell were run again
    column.restore()
    assert double_p.rules["impl"] is impl
    other = double_p.def_impl(lambda x: x)
    column.restore()                         # nothing is away: leave the new rule alone
    assert double_p.rules["impl"] is other


def test_a_rule_on_trial_does_not_outlive_the_block(double_p):
    impl = double_p.rules["impl"]
    with forget("impl", double_p):
        double_p.def_impl(lambda x: x)
    with forget("jvp", double_p):            # it never had one
        double_p.def_jvp(lambda primals, tangents: None)
    assert double_p.rules["impl"] is impl and "jvp" not in double_p.rules


def test_a_rule_defined_after_an_earlier_hole_is_kept(double_p):
    with forget("jvp", double_p):            # nothing to take away
        pass
    rule = double_p.def_jvp(lambda primals, tangents: None)
    with forget("jvp", double_p):
        assert "jvp" not in double_p.rules
    assert double_p.rules["jvp"] is rule


def test_an_inner_forget_leaves_the_outer_one_in_force(double_p):
    impl = double_p.rules["impl"]
    with forget("impl", double_p):
        with forget("impl", double_p):
            pass
        assert "impl" not in double_p.rules
    assert double_p.rules["impl"] is impl


def test_leaving_by_an_error_restores(double_p):
    with pytest.raises(NotImplementedError, match="no impl rule for primitive 'double_for_tests'"):
        with forget("impl", double_p):
            double_p.bind(1.0)
    assert float(double_p.bind(1.0)) == 2.0


def test_every_change_of_rules_has_an_epoch(double_p):
    epochs = [core.rules_epoch()]
    with forget("impl", double_p):
        epochs.append(core.rules_epoch())
        double_p.def_impl(lambda x: x)
        epochs.append(core.rules_epoch())
    epochs.append(core.rules_epoch())
    forget("impl", double_p).restore()
    epochs.append(core.rules_epoch())
    assert len(set(epochs)) == 5 and epochs == sorted(epochs)


# --- Tracers --------------------------------------------------------------------------------------

PLACE = r"transforming traced_function, at .*test_core\.py:\d+ \(unknown\)"


def test_a_leaked_tracer_names_function_and_line(double_p):
    x = unknown()
    x._trace.end()
    with pytest.raises(UnexpectedTracerError, match=PLACE):
        double_p.bind(x)


def test_a_tracer_under_the_wrong_trace_is_refused(double_p):
    with pytest.raises(UnexpectedTracerError, match="'double_for_tests' was evaluated with a traced operand"):
        double_p.bind(unknown())


def test_user_source_is_the_line_outside_the_package():
    place = core.user_source()
    assert place.code.co_name == "test_user_source_is_the_line_outside_the_package"
    assert f"test_core.py:{place.line} " in str(place)
    x = Tracer(Echo())                       # made in the package's __init__, on behalf of this line
    assert x._source.code is place.code and x._source.line == place.line + 3


def test_is_mine_compares_the_trace():
    x, y = unknown(), unknown()
    assert x._trace.is_mine(x) and not x._trace.is_mine(y) and not x._trace.is_mine(1.0)


def test_tracers_answer_from_their_aval():
    x = unknown((2, 3), np.int16)
    assert (x.shape, x.ndim, x.size, x.nbytes, x.itemsize, len(x)) == ((2, 3), 2, 6, 12, 2, 2)
    assert x.dtype == np.int16 and not x.weak_type and typeof(x) is x.aval
    assert repr(x) == "Unknown(int16[2,3])"


@pytest.mark.parametrize("convert, error", [
    (bool, TracerBoolConversionError), (int, ConcretizationTypeError),
    (float, ConcretizationTypeError), (complex, ConcretizationTypeError),
    (range, TracerIntegerConversionError), (np.asarray, TracerArrayConversionError),
    (lambda x: x.item(), ConcretizationTypeError), (lambda x: x.tolist(), ConcretizationTypeError),
    (hash, TypeError), (len, TypeError), (iter, TypeError)])
def test_conversions_of_an_unknown_tracer(convert, error):
    with pytest.raises(error):
        convert(unknown((), np.int32))


def test_conversions_of_a_known_tracer():
    x = unknown((), np.int32, Known)
    assert (bool(x), int(x), float(x), complex(x), x.item(), x.tolist()) == (True, 3, 3.0, 3, 3, 3)
    assert [0, 1, 2, 30][x] == 30
    assert core.concrete_or_error(int, x) == 3 and core.concrete_or_error(int, 4.5) == 4


def test_concrete_or_error_says_what_for():
    with pytest.raises(ConcretizationTypeError, match="the size of a test"):
        core.concrete_or_error(int, unknown(), "the size of a test")


def test_truth_of_many_elements():
    with pytest.raises(ValueError, match="ambiguous"):
        bool(unknown((2,)))


def test_assignment_says_what_to_write():
    with pytest.raises(TypeError, match=r"x.at\[index\].set"):
        unknown((2,))[0] = 1


def test_the_base_class_has_no_answers(double_p):
    with set_current_trace(Trace()), pytest.raises(NotImplementedError, match="Trace must say"):
        double_p.bind(1.0)


# --- The traces of chapter 1 ----------------------------------------------------------------------

def test_log_trace(double_p):
    with set_current_trace(LogTrace()) as log:
        double_p.bind(np.ones((2, 3), np.float32))
        double_p.bind(1.5)
    assert log.lines == ["double_for_tests(f32[2,3]) = f32[2,3]", "double_for_tests(1.5) = 3"]


def test_flops(double_p):
    assert count_flops(double_p.bind, np.ones((2, 3))) == 6
    with set_current_trace(FlopTrace()) as counting:
        core.primitives["reduce_sum"].bind(np.ones((2, 3), np.float32), axes=(0,))
        core.primitives["reshape"].bind(np.ones((2, 3), np.float32), new_sizes=(6,), dimensions=None)
        core.primitives["dot_general"].bind(
            np.ones((2, 3), np.float32), np.ones((3, 5), np.float32), precision=None,
            dimension_numbers=(((1,), (0,)), ((), ())), preferred_element_type=None)
    assert counting.by_name == {"reduce_sum": 3, "reshape": 0, "dot_general": 60}
    assert counting.flops == 63


def test_tracers_are_instances_of_array():
    """So that a user's `isinstance(x, jax.Array)` takes the same branch inside a transformation."""
    seen = []
    f = lambda x: (seen.append((isinstance(x, minijax.Array), isinstance(x, minijax.numpy.ndarray))), x)[1]
    for transform in (minijax.jit, minijax.grad, minijax.make_jaxpr):
        transform(f)(1.0)
    minijax.vmap(f)(minijax.numpy.ones(3))
    f(minijax.numpy.ones(3))
    assert seen == [(True, True)] * 5
    assert not isinstance(np.ones(3), minijax.Array) and not isinstance(1.0, minijax.Array)
