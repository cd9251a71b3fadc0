"""Gaussian rows that stand for a likelihood while a tree is moved or grown.

Reading order: `rows` (a row's likelihood as a Gaussian), `vector` (a leaf model of such rows with
several outputs), `near` (what it and `core.leaves.normal` both answer), `screen` (rows about
anchors, and the values drawn under them).

May import: `core.leaves.contract`, `core.leaves.normal`, `core.leaves.nonconjugate.native` and
`proposal`.
"""
