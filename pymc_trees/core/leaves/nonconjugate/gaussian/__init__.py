"""Gaussian rows that approximate a likelihood while a tree is changed or grown.

Reading order: `rows` (a row's likelihood as a Gaussian), `vector` (a leaf model of such rows with
several outputs), `near` (kernels common to it and `core.leaves.normal`), `screen` (expansion around
anchors, and the values drawn under it).

May import: `core.leaves.contract`, `core.leaves.normal`, `core.leaves.nonconjugate.native` and
`proposal`.
"""
