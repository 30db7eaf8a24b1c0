"""The examples run as a user starts them: in a process of their own, from the command line."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from minijax.book.datasets import Examples, load_digits, load_mnist, split

ROOT = Path(__file__).resolve().parent.parent
CLASSIFIER = ROOT / "examples" / "mnist_classifier.py"


def run(*options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, CLASSIFIER, *map(str, options)], env=environment,
                          capture_output=True, text=True, timeout=300)


def epochs(done):
    """(loss, accuracy) of each epoch that a run printed."""
    assert done.returncode == 0, done.stderr
    pattern = r"epoch +\d+  loss ([\d.]+)  held-out accuracy ([\d.]+)"
    return np.array([[float(n) for n in m] for m in re.findall(pattern, done.stdout)])


# --- Writing MNIST's files ------------------------------------------------------------------------

def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def mnist(tmp_path):
    """MNIST's four files, tiny, two of them packed: bright pixels stand where the label says."""
    rng = np.random.default_rng(0)
    for part, n in (("train", 300), ("t10k", 60)):
        labels = rng.integers(0, 10, n)
        images = rng.integers(0, 30, (n, 12, 12))
        images[np.arange(n), labels, :] = 255
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    return tmp_path


# --- The classifier -------------------------------------------------------------------------------

def test_classifier_learns_the_digits_of_the_book():
    (first, low), (second, high) = epochs(run("--epochs", 2, "--hidden", 32))
    assert second < first < 2.3 and high > 0.85


def test_classifier_learns_from_mnists_files(mnist):
    (loss, score), = epochs(run("--mnist", mnist, "--epochs", 1, "--batch-size", 10))
    assert score > 0.8


def test_classifier_says_what_is_wrong_with_mnists_files(mnist):
    (mnist / "t10k-labels-idx1-ubyte").unlink()
    done = run("--mnist", mnist)
    assert done.returncode == 1 and "t10k-labels-idx1-ubyte" in done.stderr
    assert "Traceback" not in done.stderr


def test_classifier_runs_under_jax():
    pytest.importorskip("jax")
    same = ("--epochs", 1, "--hidden", 16, "--seed", 3)
    np.testing.assert_allclose(epochs(run(*same)), epochs(run(*same, "--jax")), atol=1e-3)


# --- The data -------------------------------------------------------------------------------------

def test_digits():
    images, labels = load_digits()
    assert images.shape == (1797, 8, 8) and images.dtype == np.float32
    assert (images.min(), images.max()) == (0, 1)
    assert labels.dtype == np.int32 and list(labels[:10]) == list(range(10))
    # an eight is dark in the middle, a zero is not
    assert images[labels == 8][:, 3:5, 3:5].mean() > 2 * images[labels == 0][:, 3:5, 3:5].mean()


def test_split_is_the_same_everywhere_and_loses_nothing():
    digits = load_digits()
    train, held_out = split(digits)
    assert (len(train.labels), len(held_out.labels)) == (1438, 359)
    assert list(held_out.labels[:8]) == [9, 4, 7, 0, 2, 6, 1, 3]
    together = [np.concatenate(pair).reshape(1797, -1) for pair in zip(train, held_out)]
    ours, theirs = (np.hstack([a.reshape(1797, -1), b.reshape(1797, -1)])
                    for a, b in (together, digits))
    assert np.array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])
    assert not np.array_equal(train.labels, split(digits, seed=1)[0].labels)


@pytest.mark.parametrize("share", [0, 1, -0.5, 2])
def test_split_wants_a_share(share):
    with pytest.raises(ValueError, match="share between 0 and 1"):
        split(load_digits(), held_out=share)


def test_mnist_files_are_read(mnist):
    train, test = load_mnist(str(mnist))
    assert isinstance(train, Examples) and train.images.shape == (300, 12, 12)
    assert train.images.dtype == np.float32 and train.images.max() == 1
    assert np.array_equal(train.images.sum(axis=2).argmax(axis=1), train.labels)
    assert len(test.labels) == 60 and test.labels.dtype == np.int32


def test_mnist_files_may_have_a_dot_in_their_names(mnist):
    for path in list(mnist.iterdir()):
        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
    assert len(load_mnist(mnist)[0].labels) == 300


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder.*train-images-idx3-ubyte"):
        load_mnist(tmp_path / "nowhere")


def labels(n, value=1):
    return idx(np.full(n, value))


DAMAGE = {
    "no idx file": b"<html>not found</html>",
    "is it damaged": labels(300)[:-1],
    "has 301": labels(300) + b"\0",
    "got type 0x08 with 3": idx(np.zeros((2, 2, 2))),
    "got type 0x0d": labels(300).replace(b"\0\0\x08", b"\0\0\x0d", 1),
    "300 images but 7 labels": labels(7),
    "no digit": labels(300, 11),
    "gzip file is damaged": gzip.compress(labels(300))[:-6],
    "damaged .*": b"\x1f\x8b" + bytes(40),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_damaged_files_are_explained(mnist, message):
    (mnist / "train-labels-idx1-ubyte").write_bytes(DAMAGE[message])
    with pytest.raises(ValueError, match=message):
        load_mnist(mnist)
