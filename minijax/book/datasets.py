"""Data for the applications: the digits that come with the book, and MNIST's own files."""

import gzip
import zlib
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Examples", "load_digits", "split", "load_mnist"]


class Examples(NamedTuple):
    """Images, float32 (n, height, width) from 0 to 1, and their labels, int32 (n,)."""
    images: np.ndarray
    labels: np.ndarray


# --- The digits that come with the book -----------------------------------------------------------

def load_digits():
    """The 1797 handwritten digits of 8×8 pixels that come with the book, as `Examples`.

    They are the test set of *Optical Recognition of Handwritten Digits* (E. Alpaydin, C. Kaynak;
    UCI Machine Learning Repository; CC BY 4.0), see data/README.md.
    """
    packed = (files("minijax.book") / "data" / "digits.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    table = np.loadtxt(lines, delimiter=",", dtype=np.int32)
    images = table[:, :-1].reshape(-1, 8, 8).astype(np.float32) / 16
    return Examples(images, table[:, -1].copy())


def split(examples, held_out=0.2, seed=0):
    """(training examples, held-out examples), shuffled, the same for a seed on every machine.

    `held_out` is the share of the second part, strictly between 0 and 1; ValueError otherwise.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out is a share between 0 and 1, got {held_out}")
    # RandomState, because NumPy promises that its numbers never change
    order = np.random.RandomState(seed).permutation(len(examples.labels))
    cut = round(len(order) * (1 - held_out))
    return tuple(Examples(*(a[part] for a in examples)) for part in (order[:cut], order[cut:]))


# --- MNIST's own files ----------------------------------------------------------------------------

MNIST_PARTS = ("train", "t10k")
UNSIGNED_BYTE = 0x08


def load_mnist(folder):
    """(training examples, test examples) from a folder with MNIST's four files, packed or not.

    They are called train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
    t10k-labels-idx1-ubyte, with or without .gz. FileNotFoundError says which one is missing,
    ValueError what is wrong with one.
    """
    return tuple(load_part(Path(folder), part) for part in MNIST_PARTS)


def load_part(folder, part):
    images = read_idx(find_idx(folder, f"{part}-images", 3), 3)
    labels = read_idx(find_idx(folder, f"{part}-labels", 1), 1)
    if len(images) != len(labels):
        raise ValueError(f"{folder}: {len(images)} images but {len(labels)} labels in the files "
                         f"named {part}-…: do they belong together?")
    if labels.size and labels.max() > 9:
        raise ValueError(f"{folder}: a label of {part} is {labels.max()}, which is no digit")
    return Examples(images.astype(np.float32) / 255, labels.astype(np.int32))


def find_idx(folder, name, ndim):
    """The file's path; some unpackers turn the hyphen before idx into a dot."""
    names = [f"{name}{dot}idx{ndim}-ubyte{end}" for dot in "-." for end in ("", ".gz")]
    for candidate in names:
        if (folder / candidate).is_file():
            return folder / candidate
    what = "it" if folder.is_dir() else "there is no such folder; it"
    raise FileNotFoundError(f"{folder}: {what} should hold MNIST's file {names[0]} or {names[1]}")


def read_idx(path, ndim):
    """An array of bytes from a file in MNIST's idx format.

    The format: two zero bytes, the type (8 for bytes), the number of axes, each axis's length as a
    big-endian int32, then the values in C order.
    """
    data = read_packed(path)
    if len(data) < 4 + 4 * ndim or data[:2] != b"\0\0":
        raise ValueError(f"{path}: this is no idx file")
    if (data[2], data[3]) != (UNSIGNED_BYTE, ndim):
        raise ValueError(f"{path}: expected bytes with {ndim} axes, "
                         f"got type {data[2]:#04x} with {data[3]}")
    shape = tuple(int(n) for n in np.frombuffer(data, ">i4", count=ndim, offset=4))
    expected, got = int(np.prod(shape)), len(data) - 4 - 4 * ndim
    if expected != got:
        raise ValueError(f"{path}: shape {shape} needs {expected} bytes of data, the file has "
                         f"{got}: is it damaged, or was its download cut short?")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * ndim).reshape(shape)


def read_packed(path):
    """The bytes of a file, unpacked if they are gzip's, whatever the file is called."""
    data = path.read_bytes()
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the gzip file is damaged ({error})") from None
