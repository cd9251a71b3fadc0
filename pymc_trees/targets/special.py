"""Special functions without compiled code in PyTensor, added to its Numba backend.

Without them a likelihood's derivatives would call SciPy for one number at a time. Only Ops without
code of their own are extended.
"""

from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key, numba_njit
from pytensor.link.numba.dispatch.scalar import register_scalar_funcify
from pytensor.scalar.basic import ScalarOp
from pytensor.scalar.math import PolyGamma, TriGamma

from pymc_trees.core.compile.polygamma import polygamma

_VERSION = 1


def _trigamma(op, node, **kwargs):
    derivative = numba_njit(polygamma.py_func)

    @numba_njit
    def trigamma(x):
        return derivative(1, x)

    return trigamma, f"pymc_trees.trigamma.{_VERSION}"


def _polygamma(op, node, **kwargs):
    return numba_njit(polygamma.py_func), f"pymc_trees.polygamma.{_VERSION}"


def register_special() -> None:
    """Register code for the Ops."""
    dispatch = numba_funcify_and_cache_key.dispatch
    for op, code in ((TriGamma, _trigamma), (PolyGamma, _polygamma)):
        if dispatch(op) is dispatch(ScalarOp):
            register_scalar_funcify(op)(code)


register_special()
