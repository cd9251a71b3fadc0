"""What is a forest while it moves? Working arrays.

Reading order: `trees` (the arrays), `rows` (all rows, listed), `edit` (split and join),
`rotations` (what hangs where), `outline` (put back what hung where), `undo` (a tree put back),
`room` (for the rows of nodes), `counts` (what a trace records).

May import: `core.compile`.
"""
