"""Sums over rows in which leaves and other terms meet: `gram`, and weights of `soft` leaves."""
