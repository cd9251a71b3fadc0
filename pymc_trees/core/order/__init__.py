"""What must the leaf values of a tree satisfy together? Nothing, or an order.

Reading order: `contract` (what is asked of an order; None is none), `boxes` (which leaf may not lie
above which), `leaves` (the leaves of one tree, the lowest first), `directions` (of a declaration,
and room for a tree), `monotone` (values drawn within the order, and what they weigh), `drawn`
(values that were drawn before), `catalogue` (which orders there are).

May import: `core.leaves`, `core.forest`, `core.columns`, `core.random`, `core.compile`.
"""
