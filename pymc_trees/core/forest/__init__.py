"""What is a forest while it moves? Working arrays.

Reading order: `trees` (the arrays), `rows` (all rows, listed), `edit` (split and join),
`rotations` (what hangs where), `counts` (what a trace records).

May import: `core.compile`.
"""
