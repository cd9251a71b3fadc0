"""A forest whose rows are in shards, on one or several machines: a wing of its own.

Reading order: `kernels` (what driver and shards compute), `model` (what is read of a model, and
refused), `transports` (where the shards are), `sample_sharded`.

May import: `core`, `distributions`, `targets`, `inference`; PyMC; Dask and Ray, if installed.
"""
