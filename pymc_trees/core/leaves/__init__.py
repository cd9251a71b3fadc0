"""How probable are the rows of a leaf, with the leaf's value integrated out?

`contract` names what every leaf model answers; `normal`, `normal_gamma` and `dirichlet` are one
model each, a NamedTuple of numbers and data whose *type* chooses the kernels; `normal_vector` is
the prior of K values. `sums` makes the kernels of a leaf whose statistics are sums over rows from
what one row adds, `outputs` adds up what leaves return. `nonconjugate` holds the models whose
values do not integrate out.

May import: `core.columns`, `core.forest`.
"""
