"""One class per row, with the probabilities of its leaf."""

import numpy as np
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV

from pymc_trees.core.leaves.dirichlet import make_dirichlet
from pymc_trees.targets.affine import is_unchanged
from pymc_trees.targets.conjugate.columns import unwrapped_column
from pymc_trees.targets.conjugate.contract import ConjugateLikelihood, refusal, register_likelihood


@register_likelihood("dirichlet")
class DirichletLikelihood(ConjugateLikelihood):
    """``y ~ Categorical(p)``, or for two classes ``y ~ Bernoulli(p[:, 1])``."""

    treated = (
        "a DirichletLeaf tree in pm.Categorical(p=p), or for two classes pm.Bernoulli(p=p[:, 1])"
    )

    @property
    def n_stats(self):
        """Rows of each class."""
        return self.layout.n_values

    def read(self, term):
        """Observed classes."""
        op, name = term.rv.owner.op, term.rv.name
        if isinstance(op, CategoricalRV):
            [p], outputs = term.opened()
            if not is_unchanged(p, outputs):
                raise refusal(term.graph, f"the p of {name} is not the output of the tree itself")
        elif isinstance(op, BernoulliRV) and self.layout.n_values == 2:
            [p], outputs = term.opened()
            if unwrapped_column(p, outputs) != 1:
                raise refusal(
                    term.graph, f"the p of {name} is not the tree's second column, p[:, 1]"
                )
        else:
            raise refusal(
                term.graph,
                f"{name} is {term.says}; a DirichletLeaf needs pm.Categorical(p=p), or for two "
                "classes pm.Bernoulli(p=p[:, 1])",
            )
        return [term.value], outputs

    def leaf_data(self, settings, seen, fit):
        """Observed classes; there is no residual."""
        y = np.empty(0) if seen is None else self._classes(*seen)
        return make_dirichlet(settings.leaf[0], self.layout.n_values, y), None

    def _classes(self, observed):
        y = self.rows(observed)
        k = self.layout.n_values
        if not ((y >= 0) & (y < k) & (y == np.floor(y))).all():
            raise ValueError(
                f"The observed classes must be whole numbers from 0 to {k - 1}, as many as "
                "n_classes of the DirichletLeaf."
            )
        return y.astype(np.int64)
