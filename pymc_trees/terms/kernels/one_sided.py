"""Normal numbers above 0."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.augmentations import draw_truncated


@njit(cache=True)
def draw_above_zero(rng, mean, sd, out):
    """Write draws from Normals between 0 and infinity."""
    for i in range(out.size):
        low = -mean[i] / sd[i]
        out[i] = mean[i] + sd[i] * draw_truncated(rng, low, np.inf)
        if not out[i] > 0.0:  # rounding has lost it: in such a tail the law is exponential
            out[i] = sd[i] * rng.standard_exponential() / max(low, 1.0)
