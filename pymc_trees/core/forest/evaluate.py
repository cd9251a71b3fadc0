"""The function of x that an encoded forest stands for."""

import numpy as np
from numba import njit

from pymc_trees.core.forest.seal import is_sealed


@njit(cache=True)
def same_content(a, b):
    """Whether two contiguous arrays hold the same bits; at once when they are the same memory."""
    if a.shape != b.shape:
        return False
    if a.ctypes.data == b.ctypes.data:
        return True
    bits_a, bits_b = a.reshape(-1).view(np.uint64), b.reshape(-1).view(np.uint64)
    start = 0
    while start < bits_a.size:  # by blocks: vectorised inside, an early end between
        stop = min(start + 4096, bits_a.size)
        different = np.uint64(0)
        for k in range(start, stop):
            different |= bits_a[k] ^ bits_b[k]
        if different != 0:
            return False
        start = stop
    return True


@njit(cache=True)
def evaluate(value, X, X_train, sizes, fingerprint):
    """Outputs of a forest at the rows of ``X``, shape (rows of X, K).

    NaN everywhere when the value is not a sealed forest of this design. At the training inputs
    the cached outputs are returned when the layout holds them.
    """
    out = np.zeros((X.shape[0], sizes.n_values))
    if X.shape[1] != X_train.shape[1]:
        raise ValueError(
            "X has another number of columns than the X the forest was declared with: "
            "give it the same columns in the same order."
        )
    if not is_sealed(value, sizes.max_nodes, fingerprint):
        out[:] = np.nan
        return out
    if sizes.cache_fit and same_content(X, X_train):
        certificate = value[sizes.max_nodes :].reshape(-1)
        stop = sizes.fit_start + sizes.n_rows * sizes.n_values
        out.reshape(-1)[:] = certificate[sizes.fit_start : stop]
        return out
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not np.isfinite(X[i, j]):
                raise ValueError(
                    "X holds NaN or infinite values: remove or impute those rows before predicting."
                )
    column, right, roots = _links(value, sizes)
    for t in range(sizes.m):
        for i in range(X.shape[0]):
            k = roots[t]
            while column[k] >= 0:
                k = k + 1 if X[i, column[k]] <= value[k, 1] else right[k]
            for v in range(sizes.n_values):
                out[i, v] += value[k, 1 + v]
    return out


@njit(cache=True)
def _links(value, sizes):
    """Columns as integers, right children and roots of the preorder rows."""
    column = np.empty(sizes.max_nodes, dtype=np.int32)
    right = np.empty(sizes.max_nodes, dtype=np.int32)
    roots = np.empty(sizes.m, dtype=np.int32)
    waiting = np.empty(sizes.max_nodes, dtype=np.int32)  # splits whose right child is not met yet
    row = 0
    for t in range(sizes.m):
        roots[t] = row
        height = 0
        while True:
            column[row] = int(value[row, 0])
            row += 1
            if column[row - 1] >= 0:
                waiting[height] = row - 1
                height += 1
            elif height > 0:
                height -= 1
                right[waiting[height]] = row
            else:
                break
    return column, right, roots
