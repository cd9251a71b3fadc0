"""`pymc_trees/__init__.pyi`, which type checkers and editors read, from the table of `__init__.py`.

Public names are loaded on first use, which no type checker can follow. Write the file anew after a
change of the table: ``python tests/support/public_names.py``.
"""

from pathlib import Path

import pymc_trees

STUB = Path(pymc_trees.__file__).with_suffix(".pyi")
HEAD = '''\
"""Public names for type checkers and editors; `tests/support/public_names.py` writes this file."""

'''


def stub() -> str:
    """Text of the file, as `ruff format` and its sorting of imports have it."""
    lines = {("pymc_trees._version", "__version__")}
    for name, home in pymc_trees._HOMES.items():
        module = "pymc_trees" if name in pymc_trees._PACKAGES else f"pymc_trees.{home}"
        lines.add((module, name))

    def order(line):
        module, name = line
        kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
        return module, kind, name

    text = HEAD
    for module, name in sorted(lines, key=order):
        line = f"from {module} import {name} as {name}\n"
        if len(line) > 101:
            line = f"from {module} import (\n    {name} as {name},\n)\n"
        text += line
    return text


if __name__ == "__main__":
    STUB.write_text(stub())
