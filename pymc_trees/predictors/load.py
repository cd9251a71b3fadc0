"""`load`: a predictor from a file."""

from os import PathLike
from pathlib import Path

from pymc_trees._version import __version__
from pymc_trees.arguments import check_number
from pymc_trees.predictors import file
from pymc_trees.predictors.predictor import Predictor

MOST_BYTES = 2**31
"""Of memory that a file may take."""


def load(path: str | PathLike, *, max_bytes: int = MOST_BYTES) -> Predictor:
    """Read a predictor from a file that `Predictor.save` wrote.

    Neither PyMC nor a compiler is needed, nor loaded. Files of earlier releases are read too.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default 2**31
        Memory that the file may take; more is refused before it is taken.

    Returns
    -------
    Predictor
        As it was.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        When the file is none, is damaged or cut off, comes from a later release, or takes too much
        memory.

    Examples
    --------
    >>> import pymc_trees as pmt
    >>> try:
    ...     pmt.load(pmt.__file__)
    ... except ValueError as error:
    ...     print("is no predictor" in str(error))
    True
    """
    most = check_number("max_bytes", max_bytes, 1)
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > most:
            raise file.DamagedError(f"it has {size} bytes, more than max_bytes={most}")
        return from_content(path.read_bytes(), most)
    except ValueError as error:
        raise ValueError(
            f"{path} is no predictor that can be read: {error}. Copy the file again, or make it "
            "anew with Predictor.save."
        ) from None


def content_of(predictor: Predictor) -> bytes:
    """What the file of a predictor holds."""
    return file.packed(predictor._about | {"made_by": __version__}, predictor._arrays)


def from_content(content: bytes, most: int = MOST_BYTES) -> Predictor:
    """A predictor from `content_of`, of at most so many bytes; a `ValueError` where it is none."""
    about, arrays = file.unpacked(content, most)
    try:
        return Predictor(about, arrays)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise file.DamagedError("its facts are not those of a predictor") from error
