"""The parameters of a random variable, for every Op that PyMC makes one with."""

from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Variable
from pytensor.graph.op import Op
from pytensor.tensor.random.op import RandomVariable


def named_parameters(
    rv: Variable, kinds: type[Op] | tuple[type[Op], ...] = Op
) -> list[Variable] | None:
    """Parameters in the order of the Op's signature, if it is one of some kinds and has one.

    None for any other variable: `pm.Truncated` of most distributions has no signature, what
    ``total_size=`` wraps around a distribution has parameters only inside it.
    """
    op = rv.owner.op if rv.owner else None
    if not isinstance(op, kinds):
        return None
    is_symbolic = isinstance(op, SymbolicRandomVariable) and op.extended_signature is not None
    return list(op.dist_params(rv.owner)) if is_symbolic or isinstance(op, RandomVariable) else None


def parameters_of(rv: Variable) -> list[Variable]:
    """The same without a restriction, or all inputs of an Op without a signature, size included."""
    found = named_parameters(rv)
    return list(rv.owner.inputs) if found is None else found
