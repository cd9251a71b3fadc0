"""Which joint constraints do the leaf values of a tree satisfy? None, or an order.

Reading order: `contract` (the interface of an order; None is no order), `directions` (which leaf
may not exceed which, and the leaves of a tree, lowest first), `monotone` (values drawn within the
order, and their weights).

May import: `core.leaves`, `core.forest`, `core.columns`, `core.random`, `core.compile`.
"""
