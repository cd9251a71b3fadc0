"""Sums over rows in which leaves and other terms meet: `gram`, and `dense` columns of leaves."""
