# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: jax/_src/compiler.py (compile_or_get_cached).

The machine code of a plan: found in memory, or on disk, or compiled.
"""

from weakref import WeakValueDictionary

from minijax.compiler import disk_cache
from minijax.compiler.plan import PartText, program_text
from minijax.loop_ir import Call

__all__ = [
    "native_functions", "part_texts", "from_disk", "compile_plan", "may_be_saved", "module_text",
    "llvm_text", "assembly_text",
]


# --- Looking machine code up ----------------------------------------------------------------------

_codes = WeakValueDictionary()    # key -> machine code that some function still uses


def native_functions(plan, source):
    """{name: function} of a plan's entries; `source` is that of its main."""
    if not plan.entries:
        return {}
    # LLVM takes long to load, and programs that never jit don't need it.
    from minijax.compiler import machine
    parts = part_texts(plan)
    key = disk_cache.key_of(program_text(plan, parts), machine.identity())
    with machine.lock:
        code = _codes.get(key)
        if code is None:
            code = _codes[key] = from_disk(plan, key) or compile_plan(plan, parts, key, source)
        return code.functions()


def part_texts(plan):
    return [PartText(plan, part).text() for part in plan.parts]


def from_disk(plan, key):
    """The code that an earlier process left; None if there is none, or it can't be linked."""
    from minijax.compiler import machine
    image = disk_cache.load(key) if may_be_saved(plan) else None
    if image is None:
        return None
    try:
        return machine.MachineCode(image, [entry.name for entry in plan.entries])
    except RuntimeError:
        return None


def compile_plan(plan, parts, key, source):
    from minijax.compiler import machine
    text, effort = module_text(plan, parts)
    image = machine.compile_text(text, effort)
    if may_be_saved(plan):
        disk_cache.save(key, image, source)
    return machine.MachineCode(image, [entry.name for entry in plan.entries])


def may_be_saved(plan):
    """Programs that call back into Python stay in the process."""
    return not any(isinstance(item, Call) and "callback" in item.name
               for items in plan.sequences.values() for item in items)


def module_text(plan, parts):
    """(the LLVM module of a plan, the level of LLVM's passes for it, as in `clang -O2`).

    The level is 2 if LLVM has loops to make fast, else 1, which takes a part of the time.
    """
    from minijax.compiler import llvm_module
    writer = llvm_module.ModuleWriter(plan, parts)
    return str(writer.module), 2 if writer.is_left else 1


# --- To look at -----------------------------------------------------------------------------------

def llvm_text(plan):
    """The LLVM module of a plan before LLVM's own passes."""
    return module_text(plan, part_texts(plan))[0]


def assembly_text(plan):
    """The instructions of the CPU."""
    from minijax.compiler import machine
    return machine.assembly(*module_text(plan, part_texts(plan)))
