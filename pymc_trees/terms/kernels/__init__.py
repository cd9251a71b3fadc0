"""Sums over rows in which pairs of leaves, and leaves and other terms, meet: `gram`."""
