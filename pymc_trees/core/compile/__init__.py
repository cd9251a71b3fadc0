"""How are kernels compiled?

Reading order: `cache` (code kept on disk), `depends` (what it depends on), `turns` (processes that
share the work), `linked` (kernels that only kernels call), `pointer` (named tuples as one word),
`uncounted` (kernels that count no references), `announce` (a line while kernels compile), `bits`
(bits of a word), `lanes` (numbers at the rows of a set), `cell_lanes` (its cells up to a cut),
`assign` (copies), `dispatch` (one name for the kernels of several types), `address` (calls of
kernels that the caller is compiled without), `handle` (all kernels of a model by address), `direct`
(calls without type resolution), `external` (kernels that other compiled code calls by name),
`threads` (allocation of threads to parallel loops), `polygamma` (derivatives of the log gamma
function).

May import: numba, `_version`.
"""
