"""How are kernels compiled? `cache` (code kept on disk) and `borrow` (arrays that are not counted).

May import: numba, `_version`.
"""
