"""What is a forest while it moves? Working arrays.

Reading order: `trees` (the arrays), `rows` (all rows, listed), `edit` (split and join),
`rotations` (what hangs where), `undo` (a tree put back), `counts` (what a trace records).

May import: `core.compile`.
"""
