"""Proposals that no move of the package makes, and what one of them would change: plain NumPy.

Trees are those of Chipman's prior over columns of distinct real numbers, the leaf values are
normal and integrated out. Each proposal returns ``(log of the ratio of Metropolis and Hastings,
change of the posterior mean of f)``; nothing is changed. Grow and prune are tried equally often,
and a stump is only grown.
"""

import dataclasses

import numpy as np

NEVER = -np.inf, None


@dataclasses.dataclass
class Node:
    """A node and its training rows, increasing."""

    rows: np.ndarray
    depth: int
    rule: tuple | None = None
    children: tuple = ()

    @property
    def is_nog(self):
        return bool(self.children) and not any(child.children for child in self.children)


def tree_of(trees, X, node, rows=None, depth=0):
    """A tree of the working arrays."""
    rows = np.arange(len(X)) if rows is None else rows
    if trees.column[node] < 0:
        return Node(rows, depth)
    rule = trees.column[node], trees.cut[node]
    parts = zip((trees.left[node], trees.right[node]), divide(X, rows, rule), strict=True)
    return Node(rows, depth, rule, tuple(tree_of(trees, X, k, r, depth + 1) for k, r in parts))


def divide(X, rows, rule):
    """Rows left and right of a cut."""
    is_left = X[rows, rule[0]] <= rule[1]
    return rows[is_left], rows[~is_left]


def all_of(node):
    """Nodes in preorder."""
    yield node
    for child in node.children:
        yield from all_of(child)


def leaves_of(tree):
    return [node for node in all_of(tree) if not node.children]


def nogs_of(tree):
    return [node for node in all_of(tree) if node.is_nog]


class Posterior:
    """Of one tree, or two, given the residual of the others."""

    def __init__(self, X, sd, precision, alpha=0.95, beta=2.0):
        self.X, self.v, self.w = X, sd**2, precision
        self.alpha, self.beta = alpha, beta
        self.order = np.argsort(X, axis=0)

    def log_ml(self, n, total):
        """Log marginal likelihood of leaves of n rows whose residuals add up to ``total``."""
        scale = 1 + n * self.v * self.w
        return 0.5 * (self.v * (self.w * total) ** 2 / scale - np.log(scale))

    def mean(self, n, total):
        return self.v * self.w * total / (1 + n * self.v * self.w)

    def of_rows(self, r, *sets):
        return sum(self.log_ml(len(rows), r[rows].sum()) for rows in sets)

    def fit(self, r, *sets):
        """Posterior mean of leaves at their rows, 0 elsewhere."""
        out = np.zeros(len(r))
        for rows in sets:
            out[rows] = self.mean(len(rows), r[rows].sum())
        return out

    def log_split(self, depth):
        return np.log(self.alpha) - self.beta * np.log1p(depth)

    def log_stop(self, depth, rows):
        return 0.0 if len(rows) < 2 else np.log1p(-np.exp(self.log_split(depth)))

    def log_prior_grow(self, depth, left, right):
        """Prior of a split with two leaves over that of a leaf, without its rule."""
        stops = self.log_stop(depth + 1, left) + self.log_stop(depth + 1, right)
        return self.log_split(depth) + stops - self.log_stop(depth, np.zeros(2))

    def draw_rule(self, rng, rows):
        column = rng.integers(self.X.shape[1])
        x = self.X[rows, column]
        return column, rng.uniform(x.min(), x.max())

    def log_rule(self, x, k):
        """Log prior of a cut between the k-th and the next of increasing values of a column."""
        return np.log((x[k + 1] - x[k]) / (x[-1] - x[0])) - np.log(self.X.shape[1])

    def weights(self, r, rows):
        """Prior times likelihood of every rule relative to no split, (columns, gaps): logs."""
        inside = np.zeros(len(r), dtype=bool)
        inside[rows] = True
        out = []
        for column, order in enumerate(self.order.T):
            ordered = order[inside[order]]
            gaps = np.diff(self.X[ordered, column])
            n, sums = np.arange(1, len(rows)), np.cumsum(r[ordered])
            gain = self.log_ml(n, sums[:-1]) + self.log_ml(len(rows) - n, sums[-1] - sums[:-1])
            with np.errstate(divide="ignore"):
                out.append(np.log(gaps / gaps.sum()) + gain)
        return np.array(out) - np.log(len(out)) - self.of_rows(r, rows)


def splittable_leaves(tree):
    """Leaves that can be split."""
    return [node for node in leaves_of(tree) if len(node.rows) > 1]


def an_open_leaf(rng, tree):
    found = splittable_leaves(tree)
    return found[rng.integers(len(found))]


def nogs_if_grown(tree, leaf):
    """How many nodes can be pruned once a leaf is split."""
    parents = [n for n in nogs_of(tree) if any(child is leaf for child in n.children)]
    return len(nogs_of(tree)) - len(parents) + 1


def log_grow(post, tree, leaf, rule):
    """Log of prior and choice of node for a grown leaf, and the two sets of rows."""
    left, right = divide(post.X, leaf.rows, rule)
    if not len(left) or not len(right):
        return -np.inf, left, right
    tried = 0.5 if tree is leaf else 1.0  # prune there and back
    choice = np.log(tried * len(splittable_leaves(tree)) / nogs_if_grown(tree, leaf))
    return post.log_prior_grow(leaf.depth, left, right) + choice, left, right


def grow_from_prior(rng, post, tree, r):
    """Grow as the package does: a check of the others."""
    leaf = an_open_leaf(rng, tree)
    log_ratio, left, right = log_grow(post, tree, leaf, post.draw_rule(rng, leaf.rows))
    if log_ratio == -np.inf:
        return NEVER
    log_ratio += post.of_rows(r, left, right) - post.of_rows(r, leaf.rows)
    return log_ratio, post.fit(r, left, right) - post.fit(r, leaf.rows)


def heat_bath_grow(rng, post, tree, r):
    """Grow with the rule drawn from its conditional over all columns and cuts."""
    leaf = an_open_leaf(rng, tree)
    logs = post.weights(r, leaf.rows)
    top = logs.max()
    shares = np.exp(logs - top).ravel()
    total = shares.sum()
    column, k = divmod(rng.choice(shares.size, p=shares / total), logs.shape[1])
    x = np.sort(post.X[leaf.rows, column])
    rule = column, 0.5 * (x[k] + x[k + 1])
    log_ratio, left, right = log_grow(post, tree, leaf, rule)
    return log_ratio + top + np.log(total), post.fit(r, left, right) - post.fit(r, leaf.rows)


def heat_bath_prune(rng, post, tree, r):
    """The reverse."""
    nogs = nogs_of(tree)
    if not nogs:
        return NEVER
    nog = nogs[rng.integers(len(nogs))]
    logs = post.weights(r, nog.rows)
    top = logs.max()
    left, right = (child.rows for child in nog.children)
    n_open = len(splittable_leaves(tree)) + 1 - sum(len(rows) > 1 for rows in (left, right))
    log_ratio = -post.log_prior_grow(nog.depth, left, right) + np.log(len(nogs) / n_open)
    log_ratio -= top + np.log((0.5 if tree is nog else 1.0) * np.exp(logs - top).sum())
    return log_ratio, post.fit(r, nog.rows) - post.fit(r, left, right)


def nested_grow(rng, post, tree, r):
    """A leaf becomes a split one of whose children is split too; rules from the prior."""
    leaf = an_open_leaf(rng, tree)
    left, right = parts = divide(post.X, leaf.rows, post.draw_rule(rng, leaf.rows))
    side = rng.integers(2)
    inner, other = parts[side], parts[1 - side]
    if len(inner) < 2 or not len(other):
        return NEVER
    a, b = divide(post.X, inner, post.draw_rule(rng, inner))
    if not len(a) or not len(b):
        return NEVER
    n_nested = sum(is_nested(n, leaf) for n in all_of(tree)) + 1
    log_ratio = post.log_prior_grow(leaf.depth, left, right)
    log_ratio += post.log_prior_grow(leaf.depth + 1, a, b)
    log_ratio += np.log(2 * len(splittable_leaves(tree)) / n_nested)
    log_ratio += post.of_rows(r, a, b, other) - post.of_rows(r, leaf.rows)
    return log_ratio, post.fit(r, a, b, other) - post.fit(r, leaf.rows)


def is_nested(node, changed):
    """Whether a node has a leaf and a nog for children, and goes on having them."""
    if not node.children or any(child is changed for child in all_of(node)):
        return False
    return sorted((len(c.children), c.is_nog) for c in node.children) == [(0, False), (2, True)]


def transfer(rng, post, tree, other, r):
    """A split of the first tree is pruned and its rule grown in the second, both integrated out.

    r is the residual of all trees but the two.
    """
    nogs = nogs_of(tree)
    if not nogs:
        return NEVER
    nog = nogs[rng.integers(len(nogs))]
    targets = leaves_of(other)
    leaf = targets[rng.integers(len(targets))]
    left, right = divide(post.X, leaf.rows, nog.rule)
    if not len(left) or not len(right):
        return NEVER
    x = post.X[nog.rows, nog.rule[0]]
    y = post.X[leaf.rows, nog.rule[0]]
    rest = [node.rows for node in leaves_of(tree) if not any(node is c for c in nog.children)]
    others = [node.rows for node in targets if node is not leaf]
    before = rest + [c.rows for c in nog.children], others + [leaf.rows]
    after = [*rest, nog.rows], [*others, left, right]
    old, new = (joint(post, r, [*a, *b]) for a, b in (before, after))
    # Choices: one of the nogs and one of the leaves, there and back.
    log_ratio = np.log(len(nogs) * len(targets) / (nogs_if_grown(other, leaf) * len(after[0])))
    log_ratio += post.log_prior_grow(leaf.depth, left, right)
    log_ratio -= post.log_prior_grow(nog.depth, *(c.rows for c in nog.children))
    log_ratio += np.log(np.ptp(x) / np.ptp(y))  # density of the cut in its node
    return log_ratio + new[0] - old[0], new[1] - old[1]


def grow_path(post, r, node, rng=None):
    """A tree grown from the root by one look ahead, and log of its prior less that of the path.

    Without ``rng`` the node's own tree is weighed. Where a cut lies between two rows is left to the
    prior on both sides.
    """
    rows, depth = node.rows, node.depth
    if len(rows) < 2:
        return Node(rows, depth), 0.0
    logs = post.weights(r, rows)
    top = logs.max()
    shares = np.exp(logs - top)
    log_split, log_stop = post.log_split(depth), post.log_stop(depth, rows)
    log_bound = log_split + top + np.log(shares.sum())
    log_total = np.logaddexp(log_bound, log_stop)
    if rng is not None:
        grows = np.log(rng.random()) < log_bound - log_total
        chosen = divmod(rng.choice(shares.size, p=(shares / shares.sum()).ravel()), logs.shape[1])
    else:
        grows = bool(node.children)
        chosen = (node.rule[0], len(node.children[0].rows) - 1) if grows else None
    if not grows:
        return Node(rows, depth), log_total  # prior over path: stop / (stop / total)
    column, k = chosen
    x = np.sort(post.X[rows, column])
    rule = column, 0.5 * (x[k] + x[k + 1])
    parts = divide(post.X, rows, rule)
    if rng is None:
        parts = [child.rows for child in node.children]
    # Prior over path: the weight of the cut is its prior times what it gains.
    log_ratio = log_total - (logs[column, k] - post.log_rule(x, k))
    found = []
    for side, part in enumerate(parts):
        below = Node(part, depth + 1) if rng is not None else node.children[side]
        child, log_below = grow_path(post, r, below, rng)
        found.append(child)
        log_ratio += log_below
    return Node(rows, depth, rule, tuple(found)), log_ratio


def redraw(rng, post, tree, r):
    """A tree grown anew: what `ParticleGibbs` does with two particles, without choosing earlier."""
    new, log_new = grow_path(post, r, Node(tree.rows, 0), rng)
    old_sets, new_sets = ([leaf.rows for leaf in leaves_of(one)] for one in (tree, new))
    log_ratio = log_new - grow_path(post, r, tree)[1]
    log_ratio += post.of_rows(r, *new_sets) - post.of_rows(r, *old_sets)
    return log_ratio, post.fit(r, *new_sets) - post.fit(r, *old_sets)


def redraw_pair(rng, post, tree, other, r):
    """Two trees grown anew, the second on what the first leaves; r is the residual without both."""

    def path(first, second, rng=None):
        one, log_one = grow_path(post, r, first, rng)
        sets = [leaf.rows for leaf in leaves_of(one)]
        two, log_two = grow_path(post, r - post.fit(r, *sets), second, rng)
        sets += [leaf.rows for leaf in leaves_of(two)]
        log_ml, mean = joint(post, r, sets)
        return log_one + log_two + log_ml, mean

    log_old, old = path(tree, other)
    log_new, new = path(Node(tree.rows, 0), Node(other.rows, 0), rng)
    return log_new - log_old, new - old


def joint(post, r, sets):
    """Log marginal likelihood and posterior mean of f for the leaves of two trees together."""
    indicator = np.zeros((len(r), len(sets)))
    for k, rows in enumerate(sets):
        indicator[rows, k] = 1.0
    scale = np.eye(len(sets)) + post.v * post.w * indicator.T @ indicator
    total = post.w * indicator.T @ r
    values = post.v * np.linalg.solve(scale, total)
    log_ml = 0.5 * (total @ values - np.linalg.slogdet(scale)[1])
    return log_ml, indicator @ values
