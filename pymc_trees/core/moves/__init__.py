"""How does a tree change? One move a file: it proposes and, if accepted, edits one tree.

Reading order: `problem` (the state that moves change, their workspace, candidate nodes), `contract`
(the interface of a move, and which move is tried), `grow_prune`, `subtree` (a subtree whose rules
were replaced), `change`, `perturb`, `swap`, `rotate`, `restructure` (a new tree with the same
leaves), `catalogue` (all moves), `by_address` (models and moves as sweeps call them). A move draws
a proposal, adds up the log of its Metropolis-Hastings ratio, and accepts.

May import: `core.forest`, `core.priors`, and the contract of `core.leaves`.
"""
