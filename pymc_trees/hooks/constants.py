"""Results without the tables that lie in files: these would be as large again in every one."""

import pymc.backends.arviz

from pymc_trees.core.columns.table_file import in_file
from pymc_trees.hooks.wrap import wrap


def leave_files_out() -> None:
    """Have the group ``constant_data`` hold what is in memory."""
    wrap([pymc.backends.arviz], "find_constants", _in_memory)


def _in_memory(original, *args, **kwargs):
    found = original(*args, **kwargs)
    return {name: value for name, value in found.items() if not in_file(value)}
