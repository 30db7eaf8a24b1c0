"""Chapter 31's program under JAX: the notebook's own cells, only the imports changed."""

from pathlib import Path

import nbformat
import numpy as np
import pytest

CHAPTER = Path(__file__).resolve().parent.parent / "notebooks" / "31_digits.ipynb"


def training_cells():
    cells = nbformat.read(CHAPTER, as_version=4).cells
    return [c.source for c in cells if "training" in c.metadata.get("tags", [])]


def run(source, epochs):
    """Losses and accuracies of a short training by the program `source`."""
    names = {}
    exec(compile(source, CHAPTER.name, "exec"), names)
    params = names["initial_params"]([64, 32, 10])
    _, losses, scores = names["fit"](params, epochs=epochs, batch_size=64)
    return np.array(losses), np.array(scores)


IMPORTS = {"import minijax as jax": "import jax",
           "import minijax.numpy as jnp": "import jax.numpy as jnp"}


def under_jax(source):
    lines = source.splitlines()
    assert all(lines.count(line) == 1 for line in IMPORTS)
    return "\n".join(IMPORTS.get(line, line) for line in lines)


def test_the_chapter_trains_alike_under_jax():
    pytest.importorskip("jax")
    source = "\n\n".join(training_cells())
    (ours, our_scores), (theirs, their_scores) = run(source, 4), run(under_jax(source), 4)
    assert len(ours) == 4 * 22 and ours[-10:].mean() < 0.3 < 2 < ours[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    # an image whose two best digits are as good as equal may go either way
    np.testing.assert_allclose(our_scores, their_scores, atol=0.006)
