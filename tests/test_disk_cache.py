"""Machine code on disk: a second process, damaged and foreign entries, folders that can't be used."""

import gc
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as mnp
from minijax.compiler import disk_cache, machine
from minijax.config import (
    compilation_cache_dir, compilation_cache_max_size, enable_compilation_cache,
)

ROOT = Path(__file__).resolve().parent.parent


# --- Tools -------------------------------------------------------------------------------------

def forget():
    """Free all machine code in memory, as if the process were new."""
    minijax.clear_caches()
    gc.collect()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of entries of a cache that is on, and empty."""
    monkeypatch.delenv("MINIJAX_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("MINIJAX_CACHE_DIR", str(tmp_path))
    forget()
    return tmp_path / "programs"


@pytest.fixture
def compilations(monkeypatch):
    """A list that grows with each compilation."""
    texts, compile_text = [], machine.compile_text

    def counted(text, effort):
        texts.append(text)
        return compile_text(text, effort)
    monkeypatch.setattr(machine, "compile_text", counted)
    return texts


def run(number=0.5):
    """Trace and compile a program as a new process would, and check its result."""
    forget()
    out = minijax.jit(lambda x: mnp.exp(x) * number)(np.arange(3, dtype=np.float32))
    np.testing.assert_allclose(out, np.exp([0, 1, 2]) * number, rtol=1e-6)


def entries(folder, kind=".o"):
    return sorted(folder.glob(f"*{kind}"))


def process(code, folder, **env):
    """Start another Python with its cache in a folder."""
    env = {k: v for k, v in os.environ.items() if k != "MINIJAX_DISABLE_CACHE"} | env
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, text=True,
                            env=env | {"MINIJAX_CACHE_DIR": str(folder.parent)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def output(started):
    out, errors = started.communicate(timeout=120)
    assert started.returncode == 0, errors
    return out.split()


PROGRAM = """
    import sys
    import minijax, minijax.numpy as mnp
    from minijax.compiler import machine
    compile_text, count = machine.compile_text, []
    machine.compile_text = lambda *args: count.append(1) or compile_text(*args)
    print(minijax.jit(lambda x: mnp.tanh(x) + 0.25)(0.5), len(count), "numba" in sys.modules)
"""


# --- What it is for ----------------------------------------------------------------------------

def test_a_second_process_compiles_nothing(folder):
    first, second = (output(process(PROGRAM, folder)) for _ in range(2))
    assert first[1:] == ["1", "False"] and second[1:] == ["0", "False"]
    assert first[0] == second[0]


def test_kept_code_finds_blas_in_another_process(folder):
    code = """
        import minijax, minijax.numpy as mnp, numpy as np
        from minijax.compiler import machine
        machine.compile_text, compile_text = lambda *args: print("compiles") or compile_text(*args), \
            machine.compile_text
        x = np.arange(1200, dtype=np.float32).reshape(30, 40) % 7
        print((minijax.jit(lambda x: x @ x.T)(x) == x @ x.T).all())
    """
    assert output(process(code, folder)) == ["compiles", "True"]
    assert output(process(code, folder)) == ["True"]


def test_an_entry_is_code_and_source(folder, compilations):
    run()
    code, = entries(folder)
    source, = entries(folder, ".py")
    assert code.stem == source.stem and "def main(" in source.read_text()
    assert folder.stat().st_mode & 0o777 == 0o700
    run()
    assert len(compilations) == 1 and len(entries(folder)) == 1


def test_another_program_is_another_entry(folder):
    run(0.5), run(0.25)
    assert len(entries(folder)) == 2


def test_another_compiler_or_cpu_is_another_entry():
    keys = {disk_cache.key_of("program", "cpu"), disk_cache.key_of("program", "other cpu")}
    hash_of = disk_cache.source_hash
    try:
        disk_cache.source_hash = lambda: "another compiler"
        keys.add(disk_cache.key_of("program", "cpu"))
    finally:
        disk_cache.source_hash = hash_of
    assert len(keys) == 3 and "llvmlite" in machine.identity()


def test_names_do_not_matter(folder, compilations):
    minijax.jit(lambda x: mnp.sin(x) + 1.0)(1.0)
    forget()
    minijax.jit(lambda angle: 1.0 + 0 * angle if False else mnp.sin(angle) + 1.0)(2.0)
    assert len(compilations) == 1


# --- What may go wrong -------------------------------------------------------------------------

@pytest.mark.parametrize("damage", [
    lambda code: b"",
    lambda code: code[:20],
    lambda code: code[:-1],
    lambda code: code[:100] + bytes([code[100] ^ 1]) + code[101:],
])
def test_damaged_entries_are_rebuilt(folder, compilations, damage):
    run()
    path, = entries(folder)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    run()
    assert len(compilations) == 2 and path.read_bytes() == whole


def test_code_of_another_program_under_this_name_is_not_run(folder, compilations):
    run(0.5), run(0.25)
    first, second = entries(folder)
    first.write_bytes(second.read_bytes())
    run(0.5), run(0.25)
    assert len(compilations) == 3


def test_code_that_can_not_be_linked_is_rebuilt(folder, compilations):
    run()
    path, = entries(folder)
    path.write_bytes(disk_cache.checksum_of(path.stem, b"no object") + b"no object")
    run()
    assert len(compilations) == 2


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_for_reading_only(folder, compilations):
    folder.parent.chmod(0o500)
    try:
        run()
    finally:
        folder.parent.chmod(0o700)
    assert len(compilations) == 1 and not folder.exists()


def test_a_file_in_the_place_of_the_folder(folder):
    folder.write_text("not a folder")
    run()
    assert folder.read_text() == "not a folder"


def test_a_folder_that_others_may_write_to_is_not_used(folder, compilations):
    run()
    folder.chmod(0o777)
    run()
    assert len(compilations) == 2


def test_nothing_half_written_is_left(folder, monkeypatch):
    def full(source, target):
        raise OSError("disk full")
    monkeypatch.setattr(os, "replace", full)
    run()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("when", ["before the renaming", "after it"])
def test_ctrl_c_while_writing_passes(folder, monkeypatch, when):
    replace = os.replace

    def interrupted(source, target):
        if when == "after it":
            replace(source, target)
        raise KeyboardInterrupt
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert not list(folder.glob("tmp*"))


def test_two_processes_at_once(folder):
    started = [process(PROGRAM, folder) for _ in range(3)]
    results = [output(p) for p in started]
    assert len({r[0] for r in results}) == 1 and len(entries(folder)) == 1
    assert not list(folder.glob("tmp*"))
    assert output(process(PROGRAM, folder))[1] == "0"


# --- Where, and whether ------------------------------------------------------------------------

def test_it_can_be_turned_off(folder, monkeypatch):
    with enable_compilation_cache(False):
        run()
    monkeypatch.setenv("MINIJAX_DISABLE_CACHE", "1")
    run()
    assert not folder.exists()


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.delenv("MINIJAX_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk_cache.cache_folder() == str(tmp_path / "minijax" / "programs")
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "/somewhere")
    assert disk_cache.cache_folder() == os.path.join("/somewhere", "programs")
    with compilation_cache_dir("/elsewhere"):
        assert disk_cache.cache_folder() == os.path.join("/elsewhere", "programs")


def test_programs_that_call_back_into_python_are_not_kept(folder):
    def f(x):
        y = minijax.pure_callback(np.sin, minijax.ShapeDtypeStruct((), np.float32), x * 2)
        return y + 1
    assert minijax.jit(f)(np.float32(1.0)) == np.sin(np.float32(2)) + 1
    assert not folder.exists() or not entries(folder)


def test_the_entry_that_was_not_used_for_longest_is_removed(folder):
    for k, number in enumerate((0.5, 0.25)):
        run(number)
        for path in folder.iterdir():
            if path.stat().st_mtime > time.time() - 1000:
                os.utime(path, (1000 + k, 1000 + k))
    old = [p for p in folder.iterdir() if p.stat().st_mtime == 1000]
    size = sum(p.stat().st_size for p in folder.iterdir())
    with compilation_cache_max_size(size + 100):
        forget()
        run(0.125)
    left = set(folder.iterdir())
    assert len(entries(folder)) == 2 and left.isdisjoint(old)


def test_an_entry_in_use_is_not_old(folder):
    run()
    path, = entries(folder)
    os.utime(path, (1000, 1000))
    run()
    assert path.stat().st_mtime > 1000
