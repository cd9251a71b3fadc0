"""Sums over rows in which leaves and other terms meet: `gram`, and `dense` columns of leaves.

`one_sided` draws errors above 0.
"""
