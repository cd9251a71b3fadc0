"""Models from formulas: which terms, forests, groups and family does a line of text declare?

`parse` takes forest terms, such as `bart(x1 + x2)`, out of the text and leaves the rest to the
package formulae; `frame` evaluates terms on data frames; `families` has the table of families and
links, `priors` the default priors of terms and forests, `likelihood` the observed variable; `build`
makes the PyMC model, and `predictions` predicts at new rows and groups.

May import: `posterior` and below; formulae (first used when a formula is read), pandas, xarray.
"""

from pymc_trees.formula.build import model
from pymc_trees.formula.predictions import predict

__all__ = ["model", "predict"]
