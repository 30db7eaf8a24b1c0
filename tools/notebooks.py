"""Run the notebooks, and edit them as text.

    python tools/notebooks.py run [NAME …]          execute in place and store the outputs
    python tools/notebooks.py to-text NAME [-o F]   write NAME as a percent script, NAME.py or F
    python tools/notebooks.py from-text F [NAME]    read it back; unchanged cells keep their outputs
    python tools/notebooks.py from-module MODULE    print a script made of a module written by hand
    python tools/notebooks.py show NAME             print the notebook with its text outputs

NAME is `03_jvp` or `solutions/03_jvp`.  The percent script is an editing aid and is not committed:

    # %% [markdown]
    # # A title
    # %% tags=["nbval-ignore-output"]
    1 + 1
"""

import argparse
import difflib
import hashlib
import json
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
MARKER = re.compile(r"# %%(?: \[(markdown|raw)\])?(?: tags=(\[.*\]))?\s*$")
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def path_of(name):
    """The notebook called `03_jvp`, `03_jvp.ipynb` or `notebooks/03_jvp.ipynb`."""
    stem = str(name).removesuffix(".ipynb").removeprefix("notebooks/")
    return NOTEBOOKS / f"{stem}.ipynb"


def all_names():
    paths = [*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("solutions/*.ipynb")]
    return [str(p.relative_to(NOTEBOOKS).with_suffix("")) for p in sorted(paths)]


# --- One form on disk -----------------------------------------------------------------------------


def normalise(nb):
    """Remove what differs from machine to machine and from editor to editor."""
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = nbformat.from_dict(METADATA)
    seen = {}
    for cell in nb.cells:
        cell.source = "\n".join(line.rstrip() for line in cell.source.strip("\n").splitlines())
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        cell.id = cell_id(cell, seen)
        for output in cell.get("outputs", []):
            output.get("metadata", {}).clear()
    return nb


def cell_id(cell, seen):
    """An id that depends on the content alone, so that a diff shows only what changed."""
    key = f"{cell.cell_type}:{cell.source}"
    seen[key] = seen.get(key, 0) + 1
    return hashlib.sha256(f"{seen[key]}:{key}".encode()).hexdigest()[:12]


def read(path):
    return nbformat.read(path, as_version=4)


def write(nb, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(normalise(nb), path)


# --- Running --------------------------------------------------------------------------------------


def run(names):
    """Execute notebooks in place, a line each; a notebook that fails is left as it was."""
    failed = 0
    for name in names or all_names():
        start = time.perf_counter()
        print(f"{name:32s}", end=" ", flush=True)
        error = execute(path_of(name))
        print(error or "ok", f"({time.perf_counter() - start:.1f} s)", flush=True)
        failed += error is not None
    return int(failed > 0)


def execute(path):
    """Execute one notebook and store it; return what went wrong, or None."""
    nb = read(path)
    client = NotebookClient(nb, timeout=600, kernel_name="python3", record_timing=False,
                            skip_cells_with_tag="nbval-skip", extra_arguments=["--log-level=40"],
                            resources={"metadata": {"path": str(path.parent)}})
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError, TimeoutError) as e:
        return f"FAILED {where(nb)}\n{ANSI.sub('', str(e))}"
    nb.cells = [join_streams(cell) for cell in nb.cells]
    write(nb, path)
    return None


def where(nb):
    """The last cell that was started."""
    started = [k for k, c in enumerate(nb.cells, 1) if c.get("execution_count") or c.get("outputs")]
    return f"in cell {started[-1]}" if started else "at the start"


def join_streams(cell):
    """One output for consecutive writes to one stream: how they were cut is chance."""
    joined = []
    for output in cell.get("outputs", []):
        last = joined[-1] if joined else {}
        if output.output_type == "stream" == last.get("output_type") and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    if cell.cell_type == "code":
        cell.outputs = joined
    return cell


# --- Text -----------------------------------------------------------------------------------------


def to_text(nb):
    """A notebook as a percent script."""
    blocks = []
    for cell in nb.cells:
        kind = "" if cell.cell_type == "code" else f" [{cell.cell_type}]"
        tags = cell.metadata.get("tags", [])
        marker = f"# %%{kind}" + (f" tags={json.dumps(tags)}" if tags else "")
        body = cell.source if cell.cell_type == "code" else comment(cell.source)
        if any(MARKER.match(line) for line in cell.source.splitlines()):
            raise ValueError(f"a cell holds a line that looks like a cell marker: {cell.source!r}")
        blocks.append(f"{marker}\n{body}".rstrip() + "\n")
    return "\n".join(blocks)


def comment(text):
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def uncomment(text):
    return "\n".join(re.sub(r"^# ?", "", line) for line in text.splitlines())


def from_text(text):
    """The cells of a percent script; text above the first marker is left out."""
    cells = []
    for line in text.splitlines():
        if m := MARKER.match(line):
            cell = {"markdown": nbformat.v4.new_markdown_cell, "raw": nbformat.v4.new_raw_cell,
                    None: nbformat.v4.new_code_cell}[m[1]]()
            if m[2]:
                cell.metadata["tags"] = json.loads(m[2])
            cells.append(cell)
        elif cells:
            cells[-1].source += line + "\n"
        elif line.startswith("# %%"):
            raise ValueError(f"cannot read the cell marker {line!r}")
    for cell in cells:
        cell.source = cell.source.strip("\n")
        if cell.cell_type != "code":
            cell.source = uncomment(cell.source).strip("\n")
    return nbformat.v4.new_notebook(cells=cells, metadata=METADATA)


def keep_outputs(new, old):
    """Give the cells that did not change the outputs they had."""
    def keys(nb):
        return [(c.cell_type, c.source.strip("\n")) for c in nb.cells]
    matcher = difflib.SequenceMatcher(None, keys(old), keys(new), autojunk=False)
    for i, j, size in matcher.get_matching_blocks():
        for k in range(size):
            if new.cells[j + k].cell_type == "code":
                new.cells[j + k].outputs = old.cells[i + k].outputs
                new.cells[j + k].execution_count = old.cells[i + k].execution_count
    return new


def read_script(script, name=None):
    """Store a percent script as the notebook of its name."""
    script = Path(script)
    path = path_of(name or script.stem)
    nb = normalise(from_text(script.read_text()))
    if path.exists():
        keep_outputs(nb, normalise(read(path)))
    write(nb, path)
    stale = sum(c.cell_type == "code" and c.execution_count is None for c in nb.cells)
    print(f"{path.relative_to(ROOT)}: {len(nb.cells)} cells, {stale} to be run")


# --- A script from a module -----------------------------------------------------------------------

BANNER = re.compile(r"# --- (.*?) -{2,}$")


def module_script(module):
    """Cut a module that was written by hand into cells, one for each pair of blank lines."""
    path = ROOT / "minijax" / (module.replace(".", "/") + ".py")
    text = re.sub(r"\n+(?=# --- .*-{2}\n)", "\n\n\n", path.read_text().strip("\n"))
    blocks, out = re.split(r"\n\n\n+", text), []
    for block in blocks:
        lines = block.strip("\n").splitlines()
        while lines and (m := BANNER.match(lines[0])):
            out.append(f"# %% [markdown]\n# ## {m[1]}\n")
            lines = "\n".join(lines[1:]).strip("\n").splitlines()
        if lines:
            out += [f"# %%\n#| export {module}\n{cell}\n" for cell in split_docstring(lines)]
    return "\n".join(out)


def split_docstring(lines):
    """The first block of a module holds its docstring as well as its imports."""
    text = "\n".join(lines)
    m = re.match(r'(""".*?""")\n+(?=\S)', text, re.S)
    return [m[1], text[m.end():]] if m else [text]


# --- Reading aloud --------------------------------------------------------------------------------


def show(nb):
    """The script with the text of the outputs below each cell."""
    out = []
    for number, cell in enumerate(nb.cells, 1):
        tags = " ".join(cell.metadata.get("tags", []))
        printed = [line for o in cell.get("outputs", []) for line in output_text(o).splitlines()]
        out += [f"[{number}] {cell.cell_type} {tags}".rstrip(), cell.source]
        out += [*("    " + line for line in printed), ""]
    return "\n".join(out)


def output_text(output):
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    kinds = [k for k in output.data if k != "text/plain"]
    return output.data.get("text/plain", "") + (f"  <{', '.join(kinds)}>" if kinds else "")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "to-text", "from-text", "from-module", "show"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args(argv)
    if args.command == "run":
        return run(args.names)
    if args.command == "from-text":
        return read_script(*args.names)
    for name in args.names:
        if args.command == "from-module":
            print(module_script(name), end="")
        elif args.command == "show":
            print(show(read(path_of(name))))
        else:
            target = args.output or Path(Path(name).stem + ".py")
            target.write_text(to_text(read(path_of(name))))
            print("wrote", target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
