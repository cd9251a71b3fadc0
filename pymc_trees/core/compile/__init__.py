"""How are kernels compiled?

Reading order: `cache` (code kept on disk), `linked` (kernels that only kernels call), `announce` (a
line while kernels compile), `borrow` (arrays that are not counted), `bits` (bits of a word),
`dispatch` (one name for the kernels of several types), `external` (kernels that other compiled code
calls by name).

May import: numba, `_version`.
"""
