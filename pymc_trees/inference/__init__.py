"""How are whole posteriors inferred outside of `pm.sample`?"""
