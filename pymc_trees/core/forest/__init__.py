"""What is a forest while it moves? Working arrays.

Reading order: `trees` (the arrays), `rows` (which rows reach a node), `edit` (split and join),
`counts` (what a trace records).

May import: `core.compile`.
"""
