"""Tests compile what they run: machine code that an earlier run left on disk would hide a fault.

tests/test_disk_cache.py turns the cache on, in folders of its own.
"""

import gc
import os

os.environ["MINIJAX_DISABLE_CACHE"] = "1"       # before minijax reads it

import jax
import pytest

import minijax


@pytest.fixture(scope="module", autouse=True)
def let_go_of_machine_code():
    """Thousands of programs in one process would fill the table of its memory's mappings."""
    yield
    minijax.clear_caches()
    jax.clear_caches()
    gc.collect()
