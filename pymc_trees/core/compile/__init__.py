"""How are kernels compiled?

Reading order: `cache` (code kept on disk), `depends` (what it depends on), `turns` (processes that
share the work), `compiler` (kernels that count no references, and those that only kernels call),
`pointer` (named tuples as one word; calls without type resolution), `announce` (a line while
kernels compile), `lanes` (numbers and cells at the rows of a set, bits, copies), `dispatch` (one
name for the kernels of several types), `address` (calls of kernels that the caller is compiled
without), `handle` (all kernels of a model by address), `external` (kernels that other compiled code
calls by name), `generated` (C functions of generated code, kept on disk by a key), `threads`
(allocation of threads to parallel loops), `polygamma` (derivatives of the log gamma function).

May import: numba, `_version`.
"""
