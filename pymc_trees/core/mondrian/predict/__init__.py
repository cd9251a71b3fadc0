"""What do Mondrian trees say of a new row?

Regression: `belief` (Gaussian messages), `leave_one_out`, `empirical`, `mixture` (of leaves along
the way down) and `mixture_distribution` (its quantiles and draws).

May import: `core.mondrian`.
"""
