"""What the Ops that evaluate encoded trees share: outputs at the rows of X."""

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op


class FunctionOfRows(Op):
    """Outputs of an encoded value, the first input, at the rows of X, the second.

    Shape (rows of X, ``n_outputs``).
    """

    n_outputs: int

    def make_node(self, value, X, *others):
        """Apply to an encoded value, inputs, and what the kernel takes beside them."""
        X = pt.as_tensor(X)
        if X.ndim != 2:
            raise ValueError(
                f"X must be two-dimensional (rows, columns), but has {X.ndim} dimensions."
            )
        X = X.astype("float64")
        output = pt.tensor(dtype="float64", shape=(X.type.shape[0], self.n_outputs))
        return Apply(self, [pt.as_tensor(v) for v in (value, X, *others)], [output])

    def infer_shape(self, node, input_shapes):
        """One row per row of X."""
        return [(input_shapes[1][0], pt.constant(self.n_outputs, dtype="int64"))]
