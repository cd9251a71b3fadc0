"""What do Mondrian trees say of a new row?

Regression: `belief` (Gaussian messages), `leave_one_out`, `components` (what a mixture is kept as),
`empirical` and `mixture` (of leaves along the way down), `mixture_distribution` (its quantiles and
draws).

May import: `core.mondrian`.
"""
