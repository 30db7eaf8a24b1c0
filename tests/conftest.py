"""Tests compile what they run: machine code that an earlier run left on disk would hide a fault.

tests/test_disk_cache.py turns the cache on, in folders of its own.
"""

import os

os.environ["MINIJAX_DISABLE_CACHE"] = "1"
