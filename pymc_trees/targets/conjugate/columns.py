"""One output of a forest in a graph."""

from pytensor.graph.basic import Variable

from pymc_trees.targets.affine import output_column, passes_through


def unwrapped_column(var: Variable, outputs: Variable) -> int | None:
    """Column k if ``var`` is ``outputs[:, k]``, up to Ops that return their input, else None."""
    while output_column(var, outputs) is None:
        inner = passes_through(var)
        if inner is None:
            return None
        var = inner
    return output_column(var, outputs)
