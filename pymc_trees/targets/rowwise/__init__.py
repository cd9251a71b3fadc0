"""Likelihoods that treat rows apart: `reading` and `row_ops` find them, `target` has numbers."""
