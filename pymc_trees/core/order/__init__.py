"""Which joint constraints do the leaf values of a tree satisfy? None, or an order.

Reading order: `contract` (the interface of an order; None is no order), `boxes` (which leaf may not
exceed which), `leaves` (the leaves of one tree, lowest first), `directions` (of a declaration, and
arrays for a tree), `monotone` (values drawn within the order, and their weights), `drawn` (values
that were drawn before), `catalogue` (all orders).

May import: `core.leaves`, `core.forest`, `core.columns`, `core.random`, `core.compile`.
"""
