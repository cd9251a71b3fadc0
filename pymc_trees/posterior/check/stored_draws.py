"""Draws of one variable, in memory or in a file."""

from collections import OrderedDict
from threading import Lock

import numpy as np
import xarray as xr

SAMPLE = ("chain", "draw")
HELD = 2**30
"""Bytes of a variable that are read as a whole; more are read, and held, by blocks of draws."""


class StoredDraws:
    """(chain, draw, ...) numbers of a variable, read from their file once, not draw by draw.

    xarray keeps what it has read as a whole with the variable, so that later calls read nothing.
    More than `HELD` bytes are read in blocks of consecutive draws, of which two are held, since
    threads are at several draws at once.

    Parameters
    ----------
    array : xarray.DataArray
        The variable, with the dimensions chain and draw.
    """

    def __init__(self, array: xr.DataArray):
        whole = array.nbytes <= HELD
        if whole:  # before it is transposed: xarray would read a transposed one, and not keep it
            array = array.copy(deep=False, data=array.values)
        self._array = array.transpose(*SAMPLE, ...)
        self.shape: tuple[int, ...] = self._array.shape
        each = max(1, array.nbytes // max(1, int(np.prod(self.shape[:2]))))
        self._width = max(1, self.shape[1] if whole else HELD // (2 * each))
        self._blocks: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()
        self._lock = Lock()

    def __getitem__(self, place: tuple[int, int]) -> np.ndarray:
        """One draw, which may be a view: chain and draw, from 0, or from the end if negative."""
        chain, draw = (int(k) % n for k, n in zip(place, self.shape, strict=False))
        block, within = divmod(draw, self._width)
        with self._lock:
            found = self._blocks.get((chain, block))
            if found is None:
                found = self._read(chain, block * self._width)
                self._blocks[chain, block] = found
                if len(self._blocks) > 2:
                    self._blocks.popitem(last=False)
        return found[within]

    def _read(self, chain: int, start: int) -> np.ndarray:
        return self._array[chain, start : start + self._width].to_numpy()
