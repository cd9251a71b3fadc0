"""How does a tree change? One move a file, each proposing and, when accepted, editing one tree.

Reading order: `problem` (what moves work on), `census` (what can be moved), `contract` (what a move
is), `choice` (which move is tried), `workspace` (arrays a move writes to), `node_rows` (rows of the
nodes of the open tree), `grow_prune`, `subtree` (a subtree whose rules were replaced), `change`,
`perturb`, `swap`, `rotate`, `same_leaves` (a tree drawn anew with the leaves it has),
`restructure`, `catalogue` (all moves). A move draws a proposal, adds up the log of its
Metropolis-Hastings ratio, and accepts.

The moves are inlined into the sweep: a call hands over every array of the forest one by one, which
at a thousand rows costs as much as the work itself.

May import: `core.forest`, `core.priors`, and the contract of `core.leaves`.
"""
