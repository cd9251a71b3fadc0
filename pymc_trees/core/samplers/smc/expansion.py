"""Which nodes of a particle one stage of top-down SMC expands (Lakshminarayanan thesis, 3.3).

The rule is a function of the partial tree and the data alone, so a tree is reached along one path
only (3.4.1.1).

node
    The oldest waiting node: breadth first.
lowest
    The node of the lowest marginal likelihood; the oldest of several.
layer
    All waiting nodes.
"""

from pymc_trees.core.compile.cache import njit

NODE, LOWEST, LAYER = 0, 1, 2
EXPANSIONS = ("node", "lowest", "layer")


@njit(cache=True)
def last_place(particles, c, expansion):
    """Move the nodes of the next stage to the front of a particle's queue; return their end."""
    first, n_nodes = particles.waiting[c], particles.n_nodes[c]
    if expansion == LAYER:
        return n_nodes
    if expansion == LOWEST:
        queue, unsplittable, log_m = particles.queue, particles.unsplittable, particles.log_m
        lowest = first
        for place in range(first + 1, n_nodes):
            node = queue[c, place]
            if not unsplittable[c, node] and log_m[c, node] < log_m[c, queue[c, lowest]]:
                lowest = place
        chosen = queue[c, lowest]
        for place in range(lowest, first, -1):  # the others stay in order of age
            queue[c, place] = queue[c, place - 1]
        queue[c, first] = chosen
    return first + 1
