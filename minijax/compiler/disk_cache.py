# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: jax/_src/compilation_cache.py.

Machine code on disk, so that the next process need not compile what this one did. An entry is a
file; its name is the hash of all that the code depends on, so an entry is right or not there. It is
written under another name first and then renamed, so nobody reads half of one; and it begins with a
checksum, so a damaged one is as good as none. Whatever goes wrong, the program is compiled.
"""

import contextlib
import hashlib
import os
import tempfile
from functools import cache
from glob import glob

from minijax.config import (
    compilation_cache_dir, compilation_cache_max_size, enable_compilation_cache,
)

__all__ = [
    "is_enabled", "cache_folder", "private_folder", "key_of", "source_hash", "load", "checksum_of",
    "save", "write", "DEFAULT_LIMIT", "remove_oldest",
]


# --- Where ----------------------------------------------------------------------------------------

def is_enabled():
    """Whether machine code is kept on disk; MINIJAX_DISABLE_CACHE=1 says no."""
    return enable_compilation_cache.value and os.environ.get(
        "MINIJAX_DISABLE_CACHE", "0") in ("", "0")


def cache_folder():
    """The folder: as configured, else MINIJAX_CACHE_DIR, else where this user keeps caches."""
    chosen = compilation_cache_dir.value or os.environ.get("MINIJAX_CACHE_DIR")
    if not chosen:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        chosen = os.path.join(home, "minijax")
    return os.path.join(chosen, "programs")


def private_folder():
    """The folder, made if need be. Raises OSError if another user could write to it.

    What is read from it is executed.
    """
    folder = cache_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.stat(folder)
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"{folder} does not belong to this user alone")
    return folder


# --- Keys -----------------------------------------------------------------------------------------

def key_of(text, machine):
    """The name of the entry for a program of this structure on a machine of this description."""
    return hashlib.sha256("\0".join((text, machine, source_hash())).encode()).hexdigest()


@cache
def source_hash():
    """A hash of the compiler itself: another compiler makes other code of the same program."""
    digest = hashlib.sha256()
    for path in sorted(glob(os.path.join(os.path.dirname(__file__), "*.py"))):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


# --- Entries --------------------------------------------------------------------------------------

def load(key):
    """The machine code of a key, or None."""
    if not is_enabled():
        return None
    try:
        path = os.path.join(private_folder(), f"{key}.o")
        with open(path, "rb") as file:
            checksum, code = file.read(32), file.read()
        if checksum_of(key, code) != checksum:
            return None
        os.utime(path)            # used now: others are removed first
        return code
    except OSError:
        return None


def checksum_of(key, code):
    """32 bytes that tell a whole entry of this name from anything else."""
    return hashlib.sha256(key.encode() + code).digest()


def save(key, code, source):
    """Keep machine code, and beside it, to be read by people, the source of its `main`."""
    if not is_enabled():
        return
    try:
        folder = private_folder()
        write(folder, f"{key}.py", source.encode())
        write(folder, f"{key}.o", checksum_of(key, code) + code)
        remove_oldest(folder)
    except OSError:
        pass                      # a full disk, a folder for reading only: there is no cache then


def write(folder, name, content):
    """Write a file so that it is there whole or not at all."""
    handle, path = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(path, os.path.join(folder, name))
    except BaseException:
        with contextlib.suppress(FileNotFoundError):      # Ctrl-C may come just after the renaming
            os.unlink(path)
        raise


# --- The limit ------------------------------------------------------------------------------------

DEFAULT_LIMIT = 256 * 2 ** 20


def remove_oldest(folder):
    """Remove the entries that were not used for longest, as far as the folder is too large."""
    limit = compilation_cache_max_size.value
    limit = DEFAULT_LIMIT if limit < 0 else limit
    with os.scandir(folder) as found:
        files = [(status.st_mtime, status.st_size, item.path) for item in found
                 for status in [item.stat()]]
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= limit:
            return
        os.unlink(path)
        total -= size
