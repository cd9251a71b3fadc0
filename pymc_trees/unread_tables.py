"""What takes missing cells and text, said where `pymc.Data` refuses them.

Installed when the package is imported, if PyMC was before: such data come before the first forest.
"""

import functools
import sys


def explain_data() -> None:
    """Wrap `pymc.Data`, once, if PyMC is loaded."""
    pm, home = sys.modules.get("pymc"), sys.modules.get("pymc.data")
    original = getattr(home, "Data", None)
    if pm is None or original is None or hasattr(original, "pymc_trees_explains"):
        return

    @functools.wraps(original)
    def Data(name, value, *args, **kwargs):
        try:
            return original(name, value, *args, **kwargs)
        except (NotImplementedError, TypeError, ValueError) as error:
            what = _not_numbers(value)
            if what is None:
                raise
            refusal = type(error)
            raise refusal(
                f"{name} holds {what}, which pm.Data does not take ({error}). For the inputs of "
                f"trees use pymc_trees.Data({name!r}, ...), which does; text stands in a pandas or "
                "polars frame there."
            ) from error

    Data.pymc_trees_explains = True  # type: ignore[attr-defined]
    for place in (pm, home):
        vars(place)["Data"] = Data


def _not_numbers(table) -> str | None:
    """What the cells of a table are beside numbers; None for other values."""
    np = sys.modules["numpy"]  # PyMC's
    if np.ndim(table) != 2:
        return None
    cells = np.ma.asarray(table, dtype=object)
    if any(isinstance(cell, str) for cell in cells.data.flat):
        return "text"
    missing = np.ma.getmaskarray(cells) | np.array(
        [c is None or c != c for c in cells.data.flat]
    ).reshape(cells.shape)
    return "missing cells" if missing.any() else None
