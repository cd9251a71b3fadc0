"""Mondrian forests beside chapters 5 and 6 of Lakshminarayanan's thesis (2016)."""
