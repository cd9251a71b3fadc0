"""How is a forest sampled whose rows are on several machines?

Reading order: `model` (what is read off a model, and refused), `chain` (one chain, in messages),
`transports` (where the shards are: here, in actors of Dask or of Ray), `sample_sharded`.

May import: `core`, `distributions`, `targets`, `inference.recorded`; PyMC. Neither Dask nor Ray:
whoever has a client or the module hands it over.
"""
