"""How are kernels compiled?

Reading order: `cache` (code kept on disk), `borrow` (arrays that are not counted), `dispatch` (one
name for the kernels of several types).

May import: numba, `_version`.
"""
