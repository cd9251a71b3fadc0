"""How is a forest sampled whose rows are in shards, on one or several machines? A wing of its own.

Reading order: `kernels` (what driver and shards compute), `model` (what is read from a model, and
what is refused), `transports` (where the shards are), `sample_sharded` (a run).

May import: `core`, `distributions`, `targets`, `inference`; PyMC; Dask and Ray, if installed.
"""
