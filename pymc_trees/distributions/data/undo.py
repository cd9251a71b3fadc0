"""A model gets all variables of a declaration, or stays unchanged."""

from collections.abc import Iterator
from contextlib import contextmanager

import pymc as pm


@contextmanager
def all_or_nothing(model: pm.Model) -> Iterator[None]:
    """Take back what the block registered in a model, and in those it is nested in, if it fails.

    Some errors come late, from PyMC: a name that is taken, a dimension that is not there.
    """
    models = [model]
    while models[-1].parent is not None:
        models.append(models[-1].parent)
    held = [v for m in models for v in vars(m).values()]
    lists = [(v, list(v)) for v in held if isinstance(v, list)]
    dicts = [(v, dict(v)) for v in held if isinstance(v, dict)]
    try:
        yield
    except BaseException:
        # by the plain methods: those of a nested model's containers write to its parent too
        for names, kept in lists:
            list.clear(names)
            list.extend(names, kept)
        for table, rows in dicts:
            dict.clear(table)
            dict.update(table, rows)
        raise
