"""How does a tree change? One move a file, each proposing and, when accepted, editing one tree.

Reading order: `problem` (the state that moves change, and their workspace), `census` (candidate
nodes), `contract` (the interface of a move), `choice` (which move is tried), `grow_prune`,
`subtree` (a subtree whose rules were replaced), `change`, `perturb`, `swap`, `rotate`,
`restructure` (a new tree with the same leaves), `catalogue` (all moves), `by_address` (models and
moves as sweeps call them). A move draws a proposal, adds up the log of its Metropolis-Hastings
ratio, and accepts.

May import: `core.forest`, `core.priors`, and the contract of `core.leaves`.
"""
