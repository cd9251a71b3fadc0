"""Results without tables stored in files, which would be copied into every result."""

import pymc.backends.arviz

from pymc_trees.core.columns.table_file import in_file
from pymc_trees.hooks.wrap import wrap


def leave_files_out() -> None:
    """Restrict the group ``constant_data`` to data in memory."""
    wrap([pymc.backends.arviz], "find_constants", _in_memory)


def _in_memory(original, *args, **kwargs):
    found = original(*args, **kwargs)
    return {name: value for name, value in found.items() if not in_file(value)}
