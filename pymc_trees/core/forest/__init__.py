"""How is a forest stored while it is sampled? As working arrays.

Reading order: `trees` (the arrays), `rows` (all rows, listed), `edit` (split and join), `rotations`
(edits of links), `outline` (restores links), `undo` (restores a tree), `room` (memory for the rows
of nodes), `counts` (statistics that a trace records).

May import: `core.compile`.
"""
