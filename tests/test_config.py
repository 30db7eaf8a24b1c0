"""config and errors: overrides by context and thread, the trace key, messages."""

import subprocess
import sys
import threading

import jax
import pytest

from minijax import errors
from minijax.config import (
    bool_state, config, debug_nans, disable_jit, enable_x64, numpy_dtype_promotion, object_state)


@pytest.fixture
def restored():
    """Undo process-wide updates, and options that the test declares."""
    states, key_states = dict(config._states), config._key_states
    before = {name: state.global_value for name, state in states.items()}
    yield
    config.__dict__.update(_states=states, _key_states=key_states)
    for name, value in before.items():
        config.update(name, value)


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


# --- Values ---------------------------------------------------------------------------------------

def test_every_option_has_jax_name_and_default():
    # JAX can't be asked for the second, and the environment may have set the third
    others = ("jax_traceback_filtering", "jax_platform_name", "jax_platforms")
    for name, value in config.values.items():
        if name.startswith("jax_") and name not in others:
            assert getattr(jax.config, name) == value, name


def test_update_sets_the_process_value(restored):
    config.update("jax_enable_x64", True)
    assert config.jax_enable_x64 is True and enable_x64.value is True
    assert in_thread(lambda: config.jax_enable_x64) is True


def test_contexts_nest_and_end(restored):
    with enable_x64():
        assert config.jax_enable_x64
        with enable_x64(False):
            assert not config.jax_enable_x64
        assert config.jax_enable_x64
    assert not config.jax_enable_x64


def test_a_context_ends_when_its_block_raises():
    with pytest.raises(ZeroDivisionError), disable_jit():
        1 / 0
    assert not config.jax_disable_jit


def test_a_context_holds_in_its_thread_only_and_wins_over_update(restored):
    with enable_x64(False):
        config.update("jax_enable_x64", True)
        assert config.jax_enable_x64 is False
        assert in_thread(lambda: config.jax_enable_x64) is True


def test_a_context_can_decorate():
    @numpy_dtype_promotion("strict")
    def promotion():
        return config.jax_numpy_dtype_promotion
    assert promotion() == promotion() == "strict"
    assert config.jax_numpy_dtype_promotion == "standard"


def test_unknown_names_are_attribute_errors_with_close_matches():
    for attempt in (lambda: config.update("jax_enable_x46", True), lambda: config.jax_enable_x46):
        with pytest.raises(AttributeError, match="jax_enable_x46; did you mean .*jax_enable_x64"):
            attempt()
    assert not hasattr(config, "jax_nothing")
    with pytest.raises(AttributeError, match="config.update"):
        config.jax_enable_x64 = True


@pytest.mark.parametrize("name, bad", [("jax_enable_x64", "perhaps"), ("jax_enable_x64", 3),
                                       ("jax_numpy_dtype_promotion", "lax"),
                                       ("jax_numpy_dtype_promotion", None)])
def test_bad_values_are_refused_and_change_nothing(name, bad):
    before = config.values
    with pytest.raises(ValueError, match=name):
        config.update(name, bad)
    assert config.values == before


def test_environment_variables_carry_our_prefix():
    code = "from minijax.config import config; print(config.jax_enable_x64)"
    for variables, expected in [({"JAX_ENABLE_X64": "1"}, "False"),
                                ({"MINIJAX_ENABLE_X64": "true"}, "True"),
                                ({"MINIJAX_ENABLE_X64": "0"}, "False")]:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env=variables | {"PYTHONPATH": ":".join(sys.path)})
        assert done.stdout.strip() == expected, done.stderr


# --- The trace key --------------------------------------------------------------------------------

def test_trace_key_follows_what_tracing_reads(restored):
    start = config.trace_key()
    assert config.trace_key() is start
    with enable_x64():
        wide = config.trace_key()
        with debug_nans():
            assert config.trace_key() not in (start, wide)
        assert config.trace_key() == wide != start
    assert config.trace_key() == start
    config.update("jax_log_compiles", True)
    assert config.trace_key() == start
    config.update("jax_disable_jit", True)
    assert config.trace_key() != start
    assert in_thread(config.trace_key) == config.trace_key()


def test_trace_key_of_a_thread_sees_only_its_own_contexts():
    with enable_x64():
        assert in_thread(config.trace_key) != config.trace_key()


def test_options_can_be_added_to_the_key(restored):
    before = config.trace_key()
    mesh = object_state("test_mesh", None, "A mesh.", in_trace_key=True)
    flag = bool_state("test_flag", False, "A flag.")
    assert len(config.trace_key()) == len(before) + 1
    with mesh("grid"), flag():
        assert config.trace_key()[-1] == "grid" and config.test_flag
        with mesh(None):
            assert config.test_mesh is None
    assert config.test_mesh is None


# --- Errors ---------------------------------------------------------------------------------------

class Tracer:
    aval = "float32[3]"

    def _origin_msg(self):
        return "It came from f at model.py:7."


TRACER_ERRORS = [errors.ConcretizationTypeError, errors.TracerBoolConversionError,
                 errors.TracerIntegerConversionError, errors.TracerArrayConversionError,
                 errors.NonConcreteBooleanIndexError]


@pytest.mark.parametrize("error", TRACER_ERRORS)
def test_messages_name_the_type_and_the_origin(error):
    message = str(error(Tracer()))
    assert "float32[3]" in message and "model.py:7.\nSee the book: " in message
    assert "a traced value (object)" in str(error(object()))


def public_classes(module):
    return {n: c for n, c in vars(module).items()
            if isinstance(c, type) and issubclass(c, Exception)}


def test_classes_and_bases_are_those_of_jax():
    ours = public_classes(errors)
    for name in ("ConcretizationTypeError", "TracerBoolConversionError", "UnexpectedTracerError",
                 "TracerIntegerConversionError", "TracerArrayConversionError",
                 "NonConcreteBooleanIndexError"):
        theirs = [c.__name__ for c in getattr(jax.errors, name).__mro__]
        assert [c.__name__ for c in ours[name].__mro__] == [
            n for n in theirs if n != "_JAXErrorMixin"], name


def test_context_replaces_the_remedy():
    assert "shapes must be static" in str(
        errors.ConcretizationTypeError(Tracer(), "shapes must be static"))
