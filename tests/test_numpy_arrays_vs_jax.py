"""Creation, manipulation, contractions, sorting and sets: the same call with minijax and with JAX."""
import numpy as np
import pytest
from numpy_against_jax import OURS, agree, agree_transformed

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7) % 11
V = np.array([3., 1., 4., 1., 5., 9., 2.], np.float32)
I = np.array([3, 1, 4, 1, 5, 9, 2], np.int32)
C = np.array([1 + 2j, -1j, 3], np.complex64)

# name -> function of the numpy module; an entry that raises must raise in both
CREATION = {
    "scalars": lambda np_: [np_.array(1), np_.array(1.5), np_.array(True), np_.array(2j), np_.asarray(3)],
    "numpy scalars": lambda np_: [np_.array(np.float64(2)), np_.array(np.int8(2)), np_.asarray(np.bool_(1))],
    "lists": lambda np_: [np_.array([1, 2]), np_.array([[1, 2.5]]), np_.array([True, 2]), np_.array([]),
                          np_.array([[], []]), np_.array((1, [2])[0:1]), np_.array([1, 2j])],
    "mixed lists": lambda np_: [np_.array([np.int8(1), 2]), np_.array([np_.arange(2), [3, 4]]),
                                np_.array([np_.arange(2), [3, 4.]]), np_.array([np_.float32(1), 2]),
                                np_.array([A[0], A[1]])],
    "arrays": lambda np_: [np_.array(A), np_.array(A.T), np_.asarray(np_.arange(3)), np_.array(range(3)),
                           np_.array(np_.array(1)), np_.array(A.astype(np.float64)), np_.copy(A)],
    "dtype": lambda np_: [np_.array(1.5, int), np_.asarray(1, float), np_.array([1.5], "int8"),
                          np_.array(A, "bfloat16"), np_.array(np_.arange(3), float), np_.array(1, bool)],
    "ndmin": lambda np_: [np_.array([1, 2], ndmin=3), np_.array(1., ndmin=1), np_.array(A, ndmin=1)],
    "None": lambda np_: np_.array(None), "list with None": lambda np_: np_.array([1, None]),
    "text": lambda np_: np_.array("a"), "objects": lambda np_: np_.array(np.array([1, "a"], object)),
    "ragged": lambda np_: np_.array([[1], [1, 2]]), "set": lambda np_: np_.array({1}),
    "dict": lambda np_: np_.array({}), "too large": lambda np_: np_.array(2**40),
    "too large in list": lambda np_: np_.array([2**40]), "uint8 300": lambda np_: np_.array(300, "uint8"),
    "order": lambda np_: np_.array(A, order="F"), "bytes": lambda np_: np_.array(b"ab"),
    "scalar types": lambda np_: [np_.float32(3), np_.int32([1, 2]), np_.bfloat16(1.5), np_.bool_(2),
                                 np_.complex64(1), np_.uint8(7), np_.int_(3), np_.float_(2)],
    "astype": lambda np_: [np_.astype(A, int), np_.astype(C, "float32"), np_.astype(C, bool),
                           np_.array([1.7, -1.7]).astype("int32")],
    "zeros": lambda np_: [np_.zeros(3), np_.zeros((2, 3), int), np_.ones(()), np_.ones([2], "bool"),
                          np_.empty((0, 2)), np_.zeros((2,), np_.float16)],
    "zeros negative": lambda np_: np_.zeros((2, -1)), "zeros float": lambda np_: np_.zeros(2.5),
    "full": lambda np_: [np_.full(3, 7), np_.full((2, 2), 1.5), np_.full((2, 3), np.arange(3)),
                         np_.full(2, 3, float), np_.full((), np_.float32(2)), np_.full(2, True)],
    "full shapes": lambda np_: np_.full((2, 3), np.arange(2)), "full list": lambda np_: np_.full(2, [1, 2]),
    "like": lambda np_: [np_.zeros_like(A), np_.ones_like(I), np_.full_like(A, 7), np_.full_like(I, 2.7),
                         np_.zeros_like(1.0), np_.zeros_like(A, int), np_.ones_like(A, shape=(2,)),
                         np_.full_like(A, np.arange(4)), np_.empty_like(I), np_.full_like(1, 2)],
    "like list": lambda np_: np_.zeros_like([1, 2]),
    "arange": lambda np_: [np_.arange(5), np_.arange(5.), np_.arange(2, 9, 3), np_.arange(9, 2, -2),
                           np_.arange(0, 1, 0.1), np_.arange(3, 0), np_.arange(-2), np_.arange(2.5),
                           np_.arange(1, 3.5), np_.arange(np.int8(4)), np_.arange(4, dtype="float16"),
                           np_.arange(0, 5, 2, dtype="uint8"), np_.arange(1, step=2),
                           np_.arange(3, dtype="complex64"), np_.arange(np_.array(3))],
    "arange array": lambda np_: np_.arange(np.arange(2)), "arange None": lambda np_: np_.arange(None),
    "arange step 0": lambda np_: np_.arange(0, 3, 0),
    "linspace": lambda np_: [np_.linspace(0, 1, 5), np_.linspace(0, 10, 5, dtype=int),
                             np_.linspace(0, 1, 4, endpoint=False), np_.linspace(0, 1, 0),
                             np_.linspace(2, 1, 1), np_.linspace(0, 1, 3, retstep=True),
                             np_.linspace(np.arange(3), 5, 4), np_.linspace(np.arange(3), 5, 4, axis=-1),
                             np_.linspace(0, 1 + 1j, 3), np_.linspace(-3, 7)],
    "linspace -1": lambda np_: np_.linspace(0, 1, -1),
    "logspace": lambda np_: [np_.logspace(0, 2, 5), np_.logspace(0, 3, 4, base=2, endpoint=False)],
    "geomspace": lambda np_: [np_.geomspace(1, 1000, 4), np_.geomspace(-1, -16, 5),
                              np_.geomspace(1, 8, 3, endpoint=False)],
    "eye": lambda np_: [np_.eye(3), np_.eye(2, 3, k=1), np_.eye(2, dtype=int), np_.identity(2),
                        np_.eye(3, k=-1), np_.eye(0)],
    "tri": lambda np_: [np_.tri(3), np_.tri(2, 3, k=-1), np_.tri(2, 3, 1, int), np_.tril(A), np_.triu(B, 1),
                        np_.tril(I.reshape(1, 7), -1)],
    "tri negative": lambda np_: np_.tri(2, -3), "tril vector": lambda np_: np_.tril(V),
    "diag": lambda np_: [np_.diag(V), np_.diag(I, -2), np_.diag(A), np_.diag(A, 2), np_.diag(A, -1),
                         np_.diag(A, 9), np_.diagflat(A[:2, :2], 1), np_.diagonal(B), np_.diagonal(B, 1, 2, 0),
                         np_.diagonal(B, -1, 1, 2)],
    "diag 3d": lambda np_: np_.diag(B), "diagonal 1d": lambda np_: np_.diagonal(V),
    "meshgrid": lambda np_: [np_.meshgrid(V, I), np_.meshgrid(V, I, indexing="ij"), np_.meshgrid(V, I, sparse=True),
                             np_.meshgrid(V), np_.meshgrid(V[:2], V[:3], V[:4])],
    "meshgrid scalar": lambda np_: np_.meshgrid(V, 1.), "meshgrid indexing": lambda np_: np_.meshgrid(V, indexing="x"),
    "indices": lambda np_: [np_.indices((2, 3)), np_.indices((2, 3), sparse=True), np_.indices((2,), float)],
    "vander": lambda np_: [np_.vander(V), np_.vander(I, 3), np_.vander(V, 3, increasing=True)],
    "fromfunction": lambda np_: [np_.fromfunction(lambda i, j: i * 10 + j, (2, 3)),
                                 np_.fromfunction(lambda i: i + 1, (3,), dtype=int)],
    "buffers": lambda np_: [np_.frombuffer(A.tobytes(), np.float32), np_.from_dlpack(A)],
    "fromiter": lambda np_: np_.fromiter(range(3), int),
    "questions": lambda np_: [np_.shape(A), np_.ndim(B), np_.size(A), np_.size(A, 0), np_.isscalar(1.0),
                              np_.isscalar(V), np_.isscalar(np_.array(1)), np_.iscomplexobj(C), np_.iterable(V),
                              np_.isrealobj(A), np_.iterable(3)],
    "dtype questions": lambda np_: [np_.result_type(1, A), np_.promote_types("int32", "float16"),
                                    np_.issubdtype(np_.bfloat16, np_.floating), np_.can_cast("int8", "int32"),
                                    np_.float32 == np.float32, np_.float32 == np.dtype("float32"),
                                    hash(np_.int8) == hash(np.int8), np_.dtype(np_.float32),
                                    isinstance(np_.zeros(2), np_.ndarray), float(np_.finfo(np_.float32).eps)],
}

MANIPULATION = {
    "reshape": lambda np_: [np_.reshape(np_.array(A), (4, 3)), np_.reshape(np_.array(A), -1), np_.reshape(np_.array(A), (2, -1), order="F"),
                            np_.reshape(np_.array(A), (1, 12, 1)), np_.ravel(A), np_.ravel(A, "F"), np_.reshape(3, (1, 1)),
                            np_.zeros((0, 3)).reshape(3, 0)],
    "reshape size": lambda np_: np_.reshape(np_.array(A), (5, 2)), "reshape -1": lambda np_: np_.reshape(np_.array(A), (5, -1)),
    "reshape -1 -1": lambda np_: np_.reshape(np_.array(A), (-1, -1)), "reshape A": lambda np_: np_.reshape(np_.array(A), -1, order="A"),
    "reshape order": lambda np_: np_.reshape(np_.array(A), -1, order="Q"), "ravel K": lambda np_: np_.ravel(A, "K"),
    "reshape list": lambda np_: np_.reshape([1, 2], (2, 1)),
    "transpose": lambda np_: [np_.transpose(B), np_.transpose(B, (1, 0, 2)), np_.transpose(V), np_.swapaxes(B, 0, -1),
                              np_.moveaxis(B, 0, -1), np_.moveaxis(B, (0, 1), (-1, 0)), np_.rollaxis(B, 2),
                              np_.rollaxis(B, 0, 2), np_.permute_dims(B, (2, 0, 1)), np_.matrix_transpose(B),
                              np_.array(B).T, np_.array(B).mT],
    "transpose axes": lambda np_: np_.transpose(B, (0, 1)), "moveaxis bounds": lambda np_: np_.moveaxis(B, 3, 0),
    "moveaxis lengths": lambda np_: np_.moveaxis(B, (0, 1), 0),
    "transpose repeat": lambda np_: np_.transpose(A, (0, 0)),
    "squeeze": lambda np_: [np_.squeeze(A[None, :, None]), np_.squeeze(A[None], 0), np_.squeeze(A[None], axis=(0,)),
                            np_.expand_dims(A, 0), np_.expand_dims(A, (0, -1)), np_.expand_dims(A, -1)],
    "squeeze size": lambda np_: np_.squeeze(A, 0), "expand_dims repeat": lambda np_: np_.expand_dims(A, (0, 0)),
    "atleast": lambda np_: [np_.atleast_1d(1.0), np_.atleast_2d(V), np_.atleast_3d(A), np_.atleast_3d(V),
                            np_.atleast_1d(1, V), np_.atleast_2d(B)],
    "broadcast": lambda np_: [np_.broadcast_to(V, (2, 7)), np_.broadcast_to(1, (2,)), np_.broadcast_arrays(A, A[0], 1),
                              np_.broadcast_shapes((2, 1), (3,))],
    "broadcast_to shape": lambda np_: np_.broadcast_to(A, (3, 5)),
    "broadcast_to rank": lambda np_: np_.broadcast_to(A, (4,)),
    "concatenate": lambda np_: [np_.concatenate([A, A]), np_.concatenate([A, I[:4][None]], 0),
                                np_.concatenate([A, V], None), np_.concatenate([A, A], -1),
                                np_.concatenate(B), np_.concatenate([I, I], dtype=float), np_.concat([V, I]),
                                np_.append(V, 3), np_.append(A, A, 0), np_.append(V, np.array([1, 2]))],
    "concatenate none": lambda np_: np_.concatenate([]), "concatenate scalars": lambda np_: np_.concatenate([1, 2]),
    "concatenate shapes": lambda np_: np_.concatenate([A, A[:, 1:]]), "stack none": lambda np_: np_.stack([]),
    "stack": lambda np_: [np_.stack([A, A]), np_.stack([V, I], 1), np_.stack([1, 2.]), np_.stack(B, -1),
                          np_.vstack([V, V]), np_.hstack([V, I]), np_.hstack([A, A]), np_.dstack([A, A]),
                          np_.dstack([V, V]), np_.column_stack([V, I]), np_.column_stack([A, A]),
                          np_.vstack([A, A[0]]), np_.hstack([1, 2])],
    "stack shapes": lambda np_: np_.stack([V, A]), "stack axis": lambda np_: np_.stack([V, V], 3),
    "unstack": lambda np_: [np_.unstack(A), np_.unstack(A, axis=-1)],
    "block": lambda np_: [np_.block([[A, A], [A, A]]), np_.block([V, 1]), np_.block([[1, 2], [3, 4]]), np_.block(A)],
    "block tuple": lambda np_: np_.block((A, A)), "block depth": lambda np_: np_.block([[A], A]),
    "split": lambda np_: [np_.split(A, 2, 1), np_.split(V, [2, 5]), np_.array_split(V, 3), np_.vsplit(A, 3),
                          np_.hsplit(A, [1]), np_.dsplit(B, 2), np_.split(V, np.array([1])), np_.hsplit(V, [2])],
    "split unequal": lambda np_: np_.split(V, 3),
    "trim_zeros": lambda np_: [np_.trim_zeros(np.array([0, 0, 1, 0, 2, 0])), np_.trim_zeros(np.array([0, 1, 0]), "f"),
                               np_.trim_zeros(np.zeros(3))],
    "tile": lambda np_: [np_.tile(V, 2), np_.tile(A, (2, 1)), np_.tile(A, (2, 1, 3)), np_.tile(1, 3), np_.tile(B, 2)],
    "repeat": lambda np_: [np_.repeat(V, 2), np_.repeat(A, 3, axis=1), np_.repeat(A, np.array([1, 0, 2]), axis=0),
                           np_.repeat(A, np.array([2]), 0), np_.repeat(3, 4), np_.repeat(V, 0), np_.repeat(A, 2, -1),
                           np_.repeat(V[:3], np.array([1, 2, 1]), total_repeat_length=6),
                           np_.repeat(V[:3], np.array([1, 2, 1]), total_repeat_length=2)],
    "resize": lambda np_: [np_.resize(V, (2, 5)), np_.resize(A, 5), np_.resize(V, (0,)), np_.resize(A, (2, 2))],
    "flip": lambda np_: [np_.flip(A), np_.flip(A, 1), np_.flip(B, (0, 2)), np_.fliplr(A), np_.flipud(A)],
    "rot90": lambda np_: [np_.rot90(A), np_.rot90(A, 2), np_.rot90(A, -1), np_.rot90(B, 1, (1, 2)), np_.rot90(A, 4)],
    "rot90 vector": lambda np_: np_.rot90(V), "rot90 axes": lambda np_: np_.rot90(A, axes=(0, 0)),
    "roll": lambda np_: [np_.roll(V, 2), np_.roll(A, -1, 0), np_.roll(A, (1, 2), (0, 1)), np_.roll(A, 3),
                         np_.roll(A, 1, (0, 1)), np_.roll(V, np.array([1, 2]), 0), np_.roll(V, 30)],
    "pad": lambda np_: [np_.pad(A, 1), np_.pad(A, ((1, 2), (0, 1)), constant_values=7), np_.pad(V, (2, 1)),
                        np_.pad(A, 1, constant_values=((1, 2), (3, 4))), np_.pad(I, 1, constant_values=2.7),
                        np_.pad(A, 1, constant_values=(5, 6))],
    "pad modes": lambda np_: [np_.pad(x, w, mode=mode) for x in (V, A) for w in (1, (2, 3))
                              for mode in ("edge", "reflect", "symmetric", "wrap", "empty", "linear_ramp", "maximum",
                                           "minimum", "mean", "median")],
    "pad far": lambda np_: [np_.pad(V[:3], (7, 8), mode=mode) for mode in ("reflect", "symmetric", "wrap")],
    "pad odd": lambda np_: [np_.pad(V[:3], w, mode=mode, reflect_type="odd") for w in (2, (5, 7))
                            for mode in ("reflect", "symmetric")],
    "pad one": lambda np_: [np_.pad(V[:1], 3, mode=mode) for mode in ("reflect", "symmetric", "wrap", "edge")],
    "pad ends": lambda np_: [np_.pad(V, 3, mode="linear_ramp", end_values=(1, 2)), np_.pad(I, 2, mode="mean"),
                             np_.pad(V, 2, mode="mean", stat_length=2), np_.pad(I, 2, mode="linear_ramp")],
    "pad function": lambda np_: np_.pad(V, 2, lambda v, width, axis, kw: v.at[:width[0]].set(9)),
    "pad negative": lambda np_: np_.pad(V, -1), "pad floats": lambda np_: np_.pad(V, 1.5),
    "pad mode": lambda np_: np_.pad(V, 1, mode="x"), "pad option": lambda np_: np_.pad(V, 1, mode="edge", end_values=1),
    "pad empty axis": lambda np_: np_.pad(np.zeros(0), 1, mode="edge"), "pad shape": lambda np_: np_.pad(V, ((1, 2), (3, 4))),
    "diff": lambda np_: [np_.diff(V), np_.diff(A, axis=0), np_.diff(V, 2), np_.diff(V, prepend=0), np_.diff(V > 2),
                         np_.diff(V, prepend=V[:2], append=7), np_.diff(I), np_.diff(V, 0), np_.diff(V, 20)],
    "diff negative": lambda np_: np_.diff(V, -1), "diff scalar": lambda np_: np_.diff(1.0),
    "ediff1d": lambda np_: [np_.ediff1d(A), np_.ediff1d(V, to_end=np.array([1, 2]), to_begin=3)],
    "gradient": lambda np_: [np_.gradient(V), np_.gradient(A), np_.gradient(A, axis=1), np_.gradient(V, 2.0),
                             np_.gradient(V, np.cumsum(V)), np_.gradient(A, 2., 3.), np_.gradient(I)],
    "gradient short": lambda np_: np_.gradient(V[:1]),
    "trapezoid": lambda np_: [np_.trapezoid(V), np_.trapezoid(A, axis=0), np_.trapezoid(V, dx=0.5),
                              np_.trapezoid(V, x=np.cumsum(V)), np_.trapezoid(A, x=A ** 2, axis=0), np_.trapezoid(I)],
    "unwrap": lambda np_: [np_.unwrap(V * 2), np_.unwrap(A * 2, axis=0), np_.unwrap(I, period=4)],
    "convolve": lambda np_: [np_.convolve(x, y, mode) for mode in ("full", "same", "valid")
                             for x, y in ((V, V[:3]), (V[:3], V), (V, V[:2]), (C, V[:2]), (I, I[:2]))],
    "correlate": lambda np_: [np_.correlate(x, y, mode) for mode in ("full", "same", "valid")
                              for x, y in ((V, V[:3]), (V[:3], V), (V, V[:2]), (C, C[:2]), (I, I[:2]))],
    "convolve matrix": lambda np_: np_.convolve(A, V), "convolve empty": lambda np_: np_.convolve(V, V[:0]),
    "convolve mode": lambda np_: np_.convolve(V, V, "x"),
    "apply": lambda np_: [np_.apply_along_axis(np_.sum, 1, A), np_.apply_along_axis(lambda v: v[::-1], 1, B),
                          np_.apply_along_axis(lambda v: v[:, None] * v, 0, A),
                          np_.apply_over_axes(np_.sum, B, (0, 2))],
    "vectorize": lambda np_: [np_.vectorize(lambda x, y: x + y)(A, V[:4]),
                              np_.vectorize(np_.dot, signature="(n),(n)->()")(B, A),
                              np_.vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")(B[:, None], A[0]),
                              np_.vectorize(lambda x, n: x * n, excluded=(1,))(V, 3),
                              np_.vectorize(lambda x: (x, -x))(V[:1])],
    "vectorize sizes": lambda np_: np_.vectorize(np_.dot, signature="(n),(n)->()")(V, A),
    "vectorize signature": lambda np_: np_.vectorize(np_.dot, signature="n->n")(V),
    "vectorize count": lambda np_: np_.vectorize(np_.dot, signature="(n),(n)->()")(V),
    "vectorize output": lambda np_: np_.vectorize(lambda v: v, signature="(n)->()")(V),
    "packbits": lambda np_: [np_.packbits(I > 2), np_.packbits(A > 5, axis=1), np_.packbits(I, bitorder="little"),
                             np_.unpackbits(I.astype("uint8")), np_.unpackbits(np.array([[5], [7]], "uint8"), axis=1),
                             np_.unpackbits(np.array([5], "uint8"), count=3, bitorder="little"),
                             np_.unpackbits(np.array([5], "uint8"), count=-3)],
    "packbits dtype": lambda np_: np_.packbits(V), "unpackbits dtype": lambda np_: np_.unpackbits(I),
}

S = np.array([[4., 1.], [2., 3.]], np.float32)
CONTRACTIONS = {
    "dot": lambda np_: [np_.dot(A, A.T), np_.dot(V, V), np_.dot(A, V[:4]), np_.dot(B, A.T), np_.dot(2, A),
                        np_.dot(I, V), np_.dot(B, B[0].T), np_.dot(2, 3.0), np_.dot(C, C)],
    "dot shapes": lambda np_: np_.dot(A, A), "dot list": lambda np_: np_.dot([1, 2], V[:2]),
    "matmul": lambda np_: [np_.matmul(A, A.T), np_.matmul(V, V), np_.matmul(B, A.T), np_.matmul(A, V[:4]),
                           np_.matmul(V[:3], A), np_.matmul(V[:3], B), np_.matmul(B[:, None], B.swapaxes(1, 2)),
                           np_.matmul(I[:4], A.T), np_.array(A) @ A.T, np_.matmul(B, V[:4]),
                           np_.matmul(A, A.T, preferred_element_type="float16")],
    "matmul scalar": lambda np_: np_.matmul(A, 2), "matmul shapes": lambda np_: np_.matmul(A, A),
    "matmul batch": lambda np_: np_.matmul(B, np.zeros((3, 4, 2), np.float32)),
    "matmul batch inner": lambda np_: np_.matmul(B, np.zeros((2, 5, 2), np.float32)),
    "vdot": lambda np_: [np_.vdot(A, A), np_.vdot(C, C), np_.vdot(I, V)], "vdot sizes": lambda np_: np_.vdot(V, A),
    "inner": lambda np_: [np_.inner(A, A), np_.inner(V, V), np_.inner(2, A), np_.inner(B, A)],
    "outer": lambda np_: [np_.outer(V, I), np_.outer(A, 2), np_.outer(C, C)],
    "tensordot": lambda np_: [np_.tensordot(A, A.T, 1), np_.tensordot(B, B, 3), np_.tensordot(A, A, 0),
                              np_.tensordot(B, A, ((1, 2), (0, 1))), np_.tensordot(A, A, (0, 0)),
                              np_.tensordot(B, B, ([0, 1], [0, 1])), np_.tensordot(B, A, ((-1,), (-1,)))],
    "tensordot axes": lambda np_: np_.tensordot(A, A, 3), "tensordot pair": lambda np_: np_.tensordot(A, A, (0, [0])),
    "tensordot lengths": lambda np_: np_.tensordot(A, A, ([0], [0, 1])),
    "vecdot": lambda np_: [np_.vecdot(B, A), np_.vecdot(C, C), np_.vecdot(A, A, axis=0), np_.matvec(B, V[:4]),
                           np_.vecmat(V[:3], B), np_.vecmat(C, A)],
    "vecdot sizes": lambda np_: np_.vecdot(V, I[:3]),
    "kron": lambda np_: [np_.kron(S, A), np_.kron(V, I), np_.kron(V, A), np_.kron(B, S), np_.kron(2, S)],
    "cross": lambda np_: [np_.cross(A[:, :3], A[:, 1:]), np_.cross(V[:2], I[:2]), np_.cross(V[:2], I[:3]),
                          np_.cross(A, A + 1, axis=0), np_.cross(A, A[::-1] + 2, 0, 0, 0)],
    "cross sizes": lambda np_: np_.cross(V, V),
    "trace": lambda np_: [np_.trace(A), np_.trace(A, 1), np_.trace(B, 0, 1, 2), np_.trace(I[:4].reshape(2, 2)),
                          np_.trace(A, -1, dtype="float16"), np_.trace(A > 3)],
    "trace axes": lambda np_: np_.trace(A, 0, 1, 1),
    "einsum 1": lambda np_: [np_.einsum("ij->ji", A), np_.einsum("ij->", A), np_.einsum("ij->j", A),
                             np_.einsum("ii", S), np_.einsum("ii->i", S), np_.einsum("ji", A), np_.einsum("...i->...", B),
                             np_.einsum("iij->j", np.stack([S, S])), np_.einsum(A, [1, 0]), np_.einsum("i->", I)],
    "einsum 2": lambda np_: [np_.einsum("ij,kj->ik", A, A), np_.einsum("ij,kj", A, A), np_.einsum("i,i", V, V),
                             np_.einsum("i,j->ij", V, I), np_.einsum("bij,jk->bik", B, A.T), np_.einsum("ij,ij->i", A, A),
                             np_.einsum("...ij,...j->...i", B, B[:, 0]), np_.einsum(A, [0, 1], A, [2, 1], [0, 2]),
                             np_.einsum("ij,ij->ij", A, A[:1]), np_.einsum("ij,k->i", A, V), np_.einsum(" i j , j -> i ", A, V[:4]),
                             np_.einsum("ii,i->i", S, V[:2]), np_.einsum("i,->i", V, 2.0), np_.einsum("i,i", V > 2, V > 3)],
    "einsum 3": lambda np_: [np_.einsum("ij,jk,kl->il", A, A.T, A), np_.einsum("i,i,i->", V, V, V),
                             np_.einsum("bij,bj,i->b", B, B[:, 0], V[:3]), np_.einsum("ij,kj,lj->ikl", A, A, A, optimize=False),
                             np_.einsum("a,b,c,d->abcd", V[:2], V[:2], V[:3], V[:2], optimize="greedy")],
    "einsum precision": lambda np_: np_.einsum("ij,kj", A, A, precision="highest", preferred_element_type="float32"),
    "einsum sizes": lambda np_: np_.einsum("ij,jk", A, A), "einsum rank": lambda np_: np_.einsum("ijk->i", A),
    "einsum output": lambda np_: np_.einsum("ij->k", A), "einsum count": lambda np_: np_.einsum("ij,jk", A),
    "einsum repeated output": lambda np_: np_.einsum("ij->ii", A),
}

N = np.array([3., np.nan, -1., np.inf, 3., -np.inf, np.nan, 0.], np.float32)
SORTING = {
    "sort": lambda np_: [np_.sort(V), np_.sort(A[::-1], 0), np_.sort(B), np_.sort(B, None), np_.sort(N),
                         np_.sort(I, descending=True), np_.sort(C), np_.sort(I > 2), np_.sort(N, stable=False)],
    "argsort": lambda np_: [np_.argsort(V), np_.argsort(B, 1), np_.argsort(N), np_.argsort(I, descending=True),
                            np_.argsort(A, None), np_.argsort(V, dtype="int16"), np_.argsort(B, descending=True)],
    "sort kind": lambda np_: np_.sort(V, kind="quicksort"), "sort order": lambda np_: np_.argsort(V, order="x"),
    "sort scalar": lambda np_: np_.sort(1.0), "sort list": lambda np_: np_.sort([2, 1]),
    "lexsort": lambda np_: [np_.lexsort((V, I)), np_.lexsort((I, V > 2)), np_.lexsort((A, B[0])), np_.lexsort((A,), 0)],
    "lexsort none": lambda np_: np_.lexsort(()), "lexsort shapes": lambda np_: np_.lexsort((V, A)),
    "sort_complex": lambda np_: [np_.sort_complex(V), np_.sort_complex(C)],
    "partition": lambda np_: [np_.sort(np_.partition(V, 3)[:3]), np_.partition(V, 3)[3],
                              np_.sort(np_.argpartition(I, 2)[:2])],
    "partition bounds": lambda np_: np_.partition(V, 30),
    "searchsorted": lambda np_: [np_.searchsorted(np.sort(V), V, side=side) for side in ("left", "right")]
    + [np_.searchsorted(np.sort(N), N, side=side) for side in ("left", "right")]
    + [np_.searchsorted(V, 3.0, sorter=np.argsort(V)), np_.searchsorted(np.sort(I), 2.5), np_.searchsorted(V[:0], V)],
    "searchsorted side": lambda np_: np_.searchsorted(V, 1, side="x"), "searchsorted 2d": lambda np_: np_.searchsorted(A, 1),
    "digitize": lambda np_: [np_.digitize(V, np.array([1., 3., 5.]), right=right) for right in (False, True)]
    + [np_.digitize(V, np.array([5., 3., 1.]), right=right) for right in (False, True)] + [np_.digitize(V, V[:0])],
    "interp": lambda np_: [np_.interp(np.array([-1., 0., 0.5, 2., 9.]), np.array([0., 1., 3.]), np.array([1., 5., 2.]), *r)
                           for r in ((), (7., 8.), ("extrapolate", "extrapolate"))]
    + [np_.interp(np.array([-1., 0.5, 9.]), np.array([0., 1., 3.]), np.array([1., 5., 2.]), period=4),
       np_.interp(1, I[:2], I[:2]), np_.interp(np.array([1.]), np.array([1., 1., 2.]), np.array([3., 4., 5.]))],
    "interp sizes": lambda np_: np_.interp(1., V, V[:2]), "interp left": lambda np_: np_.interp(1., V, V, left="x"),
    "bincount": lambda np_: [np_.bincount(I), np_.bincount(I, V), np_.bincount(I, minlength=12), np_.bincount(I, length=4),
                             np_.bincount(I[:0]), np_.bincount(np.array([-1, 2])), np_.bincount(I > 2)],
    "bincount dtype": lambda np_: np_.bincount(V), "bincount rank": lambda np_: np_.bincount(I.reshape(1, 7)),
    "histogram": lambda np_: [np_.histogram(V), np_.histogram(V, 3), np_.histogram(V, np.array([0., 2., 4.])),
                              np_.histogram(I, 4, range=(0, 4)), np_.histogram(V, 3, density=True),
                              np_.histogram(V, 3, weights=I), np_.histogram_bin_edges(V, 4), np_.histogram(A, 3)],
    "histogram name": lambda np_: np_.histogram(V, "auto"),
    "unique": lambda np_: [np_.unique(x, True, True, True, axis=axis, equal_nan=equal)
                           for x, axis, equal in ((V, None, True), (N, None, True), (N, None, False), (B % 2, None, True),
                                                  (np.array([[1, 2], [1, 1], [1, 2]]), 0, True),
                                                  (np.array([[1, 2], [1, 1], [1, 2]]).T, 1, True), (V[:0], None, True))],
    "unique size": lambda np_: [np_.unique(V, True, True, True, size=size, fill_value=fill)
                                for size in (2, 6, 9) for fill in (None, -1)],
    "unique empty": lambda np_: np_.unique(V[:0], size=2), "unique empty filled": lambda np_: np_.unique(V[:0], size=2, fill_value=3),
    "unique array api": lambda np_: [list(np_.unique_all(I)), list(np_.unique_counts(N)), list(np_.unique_inverse(A)),
                                     np_.unique_values(I)],
    "isin": lambda np_: [np_.isin(A, V), np_.isin(A, I, invert=True), np_.isin(V, V[:0]), np_.isin(3, I), np_.isin(N, N)],
    "union1d": lambda np_: [np_.union1d(V, I), np_.union1d(V, A, size=20), np_.union1d(V, A, size=3, fill_value=7)],
    "intersect1d": lambda np_: [np_.intersect1d(V, A), np_.intersect1d(V, A, return_indices=True), np_.intersect1d(V, A, size=9),
                                np_.intersect1d(V, A, size=9, fill_value=-1, return_indices=True), np_.intersect1d(V, V[:0]),
                                np_.intersect1d(I, I, size=3)],
    "setdiff1d": lambda np_: [np_.setdiff1d(V, A[0]), np_.setdiff1d(V, A[0], size=7), np_.setdiff1d(V, A[0], size=2, fill_value=-1),
                              np_.setdiff1d(V, A[0], assume_unique=True), np_.setdiff1d(V[:0], V)],
    "setxor1d": lambda np_: [np_.setxor1d(V, A), np_.setxor1d(V, A, size=12, fill_value=-1), np_.setxor1d(V, V)],
}

GROUPS = {"creation": CREATION, "manipulation": MANIPULATION, "contractions": CONTRACTIONS, "sorting": SORTING}
CASES = [(group, name) for group, cases in GROUPS.items() for name in cases]


@pytest.mark.parametrize("group, name", CASES, ids=[f"{g}-{n}" for g, n in CASES])
def test_same_as_jax(group, name):
    agree(lambda m: GROUPS[group][name](m.np), rtol=1e-5, atol=1e-5)


# --- Transformations -----------------------------------------------------------------------------

X = np.array([[0.5, 2.0, -1.0], [3.0, 1.5, 0.25]], np.float32)
SMOOTH = {
    "list": lambda np_, x: np_.array([[x[0, 0], 1.0], [2, x[1, 1]]]),
    "linspace": lambda np_, x: np_.linspace(x, 2.0, 3), "geomspace": lambda np_, x: np_.geomspace(x[1], 9.0, 3),
    "full": lambda np_, x: np_.full((2, 2), x[0, 0]), "tril": lambda np_, x: np_.tril(x), "diag": lambda np_, x: np_.diag(x[0], 1),
    "diagonal": lambda np_, x: np_.diagonal(x, 1), "vander": lambda np_, x: np_.vander(x[1]), "diagflat": lambda np_, x: np_.diagflat(x),
    "meshgrid": lambda np_, x: np_.meshgrid(x[0], x[1]), "reshape F": lambda np_, x: np_.reshape(x, (3, 2), order="F"),
    "moveaxis": lambda np_, x: np_.moveaxis(x, 0, -1), "stack": lambda np_, x: np_.stack([x, x ** 2], 1),
    "block": lambda np_, x: np_.block([[x], [x]]), "split": lambda np_, x: np_.split(x, 3, 1), "tile": lambda np_, x: np_.tile(x, (2, 2)),
    "repeat": lambda np_, x: np_.repeat(x, np.array([2, 0, 1]), axis=1), "roll": lambda np_, x: np_.roll(x, 1, 1),
    "repeat length": lambda np_, x: np_.repeat(x, np.array([2, 0, 1]), axis=1, total_repeat_length=5),
    "rot90": lambda np_, x: np_.rot90(x), "pad": lambda np_, x: np_.pad(x, 1, constant_values=2.0),
    "pad reflect": lambda np_, x: np_.pad(x, 2, mode="reflect"), "pad mean": lambda np_, x: np_.pad(x, 1, mode="mean"),
    "diff": lambda np_, x: np_.diff(x), "gradient": lambda np_, x: np_.gradient(x), "trapezoid": lambda np_, x: np_.trapezoid(x),
    "convolve": lambda np_, x: np_.convolve(x[0], x[1]), "correlate": lambda np_, x: np_.correlate(x[0], x[1, :2], "same"),
    "vectorize": lambda np_, x: np_.vectorize(np_.vdot, signature="(n),(n)->()")(x, x[0]),
    "apply_along_axis": lambda np_, x: np_.apply_along_axis(lambda v: v * v[0], 1, x), "resize": lambda np_, x: np_.resize(x, (2, 5)),
    "matmul": lambda np_, x: np_.matmul(x, x.T), "dot": lambda np_, x: np_.dot(x, x[0]), "inner": lambda np_, x: np_.inner(x, x),
    "einsum": lambda np_, x: np_.einsum("ij,kj,k->ik", x, x, x[:, 0]), "einsum diagonal": lambda np_, x: np_.einsum("ii->i", x[:, :2]),
    "outer": lambda np_, x: np_.outer(x, x[0]), "kron": lambda np_, x: np_.kron(x, x), "cross": lambda np_, x: np_.cross(x[0], x[1]),
    "tensordot": lambda np_, x: np_.tensordot(x, x, (0, 0)), "trace": lambda np_, x: np_.trace(x), "sort": lambda np_, x: np_.sort(x),
    "interp": lambda np_, x: np_.interp(x, np.array([-1., 0., 2.]), np.array([1., 3., 2.])),
    "interp values": lambda np_, x: np_.interp(0.7, np.array([-1., 0., 2.]), x[0]), "vecdot": lambda np_, x: np_.vecdot(x, x[0]),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_under_transformations(name):
    agree_transformed(lambda m, x: SMOOTH[name](m.np, m.np.asarray(x)), X, rtol=1e-5, atol=1e-5)


INTEGER_VALUED = {
    "argsort": lambda np_, x: np_.argsort(x), "lexsort": lambda np_, x: np_.lexsort((x, x[::-1])),
    "searchsorted": lambda np_, x: np_.searchsorted(np.array([0., 1., 2.]), x),
    "searchsorted in": lambda np_, x: np_.searchsorted(np_.sort(x[0]), 1.0, side="right"),
    "digitize": lambda np_, x: np_.digitize(x, np.array([2., 1., 0.])), "histogram": lambda np_, x: np_.histogram(x, 3)[0],
    "unique": lambda np_, x: np_.unique(x, size=4), "isin": lambda np_, x: np_.isin(x, np.array([2., 3.])),
    "bincount": lambda np_, x: np_.bincount(np_.array(x[0] > 1, int), length=2),
    "packbits": lambda np_, x: np_.packbits(x > 1),
    "setdiff1d": lambda np_, x: np_.setdiff1d(x, np.array([2., 3.]), size=6),
}


@pytest.mark.parametrize("name", INTEGER_VALUED)
def test_integer_valued_under_transformations(name):
    agree_transformed(lambda m, x: INTEGER_VALUED[name](m.np, m.np.asarray(x)), X, differentiable=False,
                      rtol=1e-5)


def test_traced_shifts_and_lengths():
    agree_transformed(lambda m, s: m.np.roll(m.np.asarray(A), s, 1), np.int32(3), differentiable=False)
    agree(lambda m: m.jit(lambda n: m.np.repeat(m.np.asarray(V), n))(2))
    agree(lambda m: m.jit(lambda n: m.np.repeat(m.np.arange(3), n, total_repeat_length=5))(np.array([1, 2, 2])))
    agree(lambda m: m.jit(lambda x: m.np.unique(x))(V))
    agree(lambda m: m.jit(lambda n: m.np.arange(n))(3))
    agree(lambda m: m.jit(lambda n: m.np.zeros(n))(3))


def test_later_writes_do_not_show():
    source = np.zeros(3, np.float32)
    x = OURS.np.asarray(source)
    source[0] = 7
    assert float(x[0]) == 0
