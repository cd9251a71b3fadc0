"""The trees of all draws of one forest in ragged arrays, without the training rows.

Trees lie one after another, those of a draw together, each in preorder: node, left subtree, right
subtree. There are D draws of m trees, T nodes and L leaves in all, and V values of a leaf.

============ ================ ====================================================================
array        shape, type      meaning
============ ================ ====================================================================
``sizes``    (D m,) unsigned  nodes of each tree
``rules``    (T,) unsigned    0 in a leaf; in a split node 1 + column + p * rule_kind
``places``   (T - L,) unsig.  of each split node, the place of its cut in ``cuts``
``cuts``     (C,) float64     distinct cuts, or sets of levels, in order
``values``   (L, V) float64   leaf values
============ ================ ====================================================================

The ``rule_kind`` is that of encoded forests (`core.value.fields`). Further arrays by kind of tree:

- not mixed: ``seeds`` (D,) uint64, the checksum of each draw, which decides where missing cells go;
- mixed: ``levels`` (p,) int64, numbers of levels that training rows had;
- leaves with slopes: ``slopes`` (2 + 4 p,) float64, as `LinearLeaf` has them;
- soft: ``bandwidths`` (D m,), ``knots``, ``heights``, ``offsets`` and ``hard``, as
  `core.soft_forest` has them.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MAX_LEVELS, SET

CONSTANT, LINEAR, SOFT = "constant", "linear", "soft"
KINDS = (CONSTANT, LINEAR, SOFT)
MOST_COLUMNS = 2**28


class Links(NamedTuple):
    """Nodes of all trees by their numbers."""

    roots: np.ndarray
    """(D m + 1,) first node of each tree, and T."""
    split: np.ndarray
    """(S,) split nodes; the left child of each is the next node."""
    right: np.ndarray
    """(S,) their right children."""
    column: np.ndarray
    """(S,) their columns."""
    rule_kind: np.ndarray
    """(S,) int8."""
    cut: np.ndarray
    """(S,) float64."""
    leaf: np.ndarray
    """(T,) number of the leaf, of a split node that of the next leaf."""
    split_of: np.ndarray
    """(T,) number of the split node, of a leaf that of the next split node."""
    depth: int
    """Of the deepest leaf."""


class PackedForest:
    """Trees of all draws of a forest.

    Parameters
    ----------
    arrays : dict of str and array
        As above.
    about : dict
        ``kind`` (`KINDS`), ``draws`` D, ``trees`` m, ``columns`` p, ``outputs`` K, ``mixed``.

    Raises
    ------
    ValueError
        When arrays are not those of a forest.
    """

    def __init__(self, arrays: dict[str, np.ndarray], about: dict[str, Any]):
        self.arrays, self.about = arrays, about
        self.kind: str = about["kind"]
        self.draws, self.trees, self.p = (int(about[k]) for k in ("draws", "trees", "columns"))
        self.n_outputs = int(about["outputs"])
        self.mixed = bool(about["mixed"])
        self._check()

    @property
    def values(self) -> np.ndarray:
        """(L, V) leaf values."""
        return self.arrays["values"]

    def _check(self) -> None:
        """Whether every number that is followed leads somewhere."""
        arrays, p = self.arrays, self.p
        sizes, rules, places = (arrays[k] for k in ("sizes", "rules", "places"))
        cuts, values = arrays["cuts"], arrays["values"]
        ok = self.kind in KINDS and self.draws > 0 and self.trees > 0 and 0 < p < MOST_COLUMNS
        ok = ok and all(one.ndim == 1 for one in (sizes, rules, places, cuts)) and values.ndim == 2
        ok = ok and all(one.dtype.kind == "u" for one in (sizes, rules, places))
        ok = ok and cuts.dtype == values.dtype == np.float64
        _require(ok)
        total = int(sizes.sum(dtype=np.uint64))
        is_leaf = rules == 0
        _require(len(sizes) == self.draws * self.trees and sizes.all() and total == len(rules))
        _require(int(is_leaf.sum()) == len(values) and len(rules) - len(values) == len(places))
        kinds = 1 if self.kind == SOFT or not self.mixed else 4
        _require(int(rules.max()) <= p * kinds)
        _require(not len(places) or int(places.max()) < len(cuts))
        _require(bool(np.isfinite(cuts).all() and np.isfinite(values).all()))
        # open places of a tree before each node: one at its root, one after all but its last
        steps = np.where(is_leaf, -1, 1)
        ends = np.cumsum(sizes, dtype=np.int64)
        height = np.cumsum(steps)
        _require(np.array_equal(height[ends - 1], -np.arange(1, len(ends) + 1)))
        last = np.zeros(total, dtype=bool)
        last[ends - 1] = True
        tree = np.repeat(np.arange(len(sizes)), sizes)
        _require(bool((height[~last] + tree[~last] >= 0).all()))
        self._height = height - steps + tree
        self._check_more(arrays)

    def _check_more(self, arrays) -> None:
        p, wanted = self.p, {"sizes", "rules", "places", "cuts", "values"}
        outputs = self.values.shape[1]
        if self.kind == SOFT:
            wanted |= {"bandwidths", "knots", "heights", "offsets", "hard"}
            _require(wanted == set(arrays) and outputs == self.n_outputs == 1)
            offsets, knots = arrays["offsets"], arrays["knots"]
            _require(offsets.shape == (p + 1,) and offsets.dtype == np.int64 and offsets[0] == 0)
            _require(bool((np.diff(offsets) > 0).all()) and offsets[-1] == len(knots))
            _require(knots.dtype == arrays["heights"].dtype == np.float64)
            _require(knots.shape == arrays["heights"].shape == (len(knots),))
            _require(arrays["bandwidths"].shape == (self.draws * self.trees,))
            _require(arrays["bandwidths"].dtype == np.float64)
            _require(bool((arrays["bandwidths"] > 0).all()))
            _require(arrays["hard"].shape == (p,) and arrays["hard"].dtype == bool)
            return
        if self.mixed:
            wanted |= {"levels"}
            _require("levels" in arrays and arrays["levels"].shape == (p,))
            levels = arrays["levels"]
            _require(levels.dtype == np.int64 and bool((levels >= 0).all()))
            rule = arrays["rules"][arrays["rules"] > 0].astype(np.int64) - 1
            sets = rule // p >= SET
            cut = arrays["cuts"][arrays["places"]][sets]
            _require(bool(((cut >= 0) & (cut < 2.0**MAX_LEVELS) & (cut == np.floor(cut))).all()))
            _require(bool((levels[rule[sets] % p] > 0).all()))
            _require(int(levels[rule[sets] % p].max(initial=0)) <= MAX_LEVELS)
        else:
            wanted |= {"seeds"}
            _require("seeds" in arrays and arrays["seeds"].shape == (self.draws,))
            _require(arrays["seeds"].dtype == np.uint64)
        if self.kind == LINEAR:
            wanted |= {"slopes"}
            _require("slopes" in arrays and arrays["slopes"].shape == (2 + 4 * p,))
            slopes = arrays["slopes"]
            _require(slopes.dtype == np.float64 and slopes[0] in (0.0, 1.0, 2.0))
            n_slopes = int((slopes[3::4] > 0).sum())
            lines = 1 if slopes[0] == 0.0 else n_slopes
            _require(self.n_outputs > 0 and outputs == self.n_outputs * (1 + lines) + 1)
        else:
            _require(outputs == self.n_outputs)
        _require(wanted == set(arrays))

    @cached_property
    def links(self) -> Links:
        """Nodes by number: made when first needed."""
        arrays, p = self.arrays, self.p
        sizes = arrays["sizes"].astype(np.int64)
        is_split = arrays["rules"] > 0
        roots = np.concatenate([[0], np.cumsum(sizes)])
        # The right child of a node is the next one of its tree with as many open places before it.
        tree = np.repeat(np.arange(len(sizes)), sizes)
        order = np.argsort(tree * (int(self._height.max()) + 1) + self._height, kind="stable")
        following = np.empty(len(order), dtype=np.int64)
        following[order[:-1]], following[order[-1]] = order[1:], 0
        split = np.flatnonzero(is_split)
        rule = arrays["rules"][split].astype(np.int64) - 1
        split_of = np.cumsum(is_split) - is_split
        links = Links(
            roots,
            split,
            following[split],
            (rule % p).astype(np.int32 if p > 2**15 else np.int16),
            (rule // p).astype(np.int8),
            arrays["cuts"][arrays["places"]],
            np.arange(len(is_split)) - split_of,
            split_of,
            0,
        )
        return links._replace(depth=_depth(links, is_split))

    @cached_property
    def lists(self) -> dict[str, list]:
        """The same as lists, of which Python takes one number at a time faster."""
        links = self.links
        return {name: getattr(links, name).tolist() for name in Links._fields[:-1]}

    @cached_property
    def levels_of_depth(self) -> list[np.ndarray]:
        """Split nodes, by their number among these, of each depth."""
        return _by_depth(self.links, self.arrays["rules"] > 0)

    def thinned(self, which: np.ndarray) -> "PackedForest":
        """The trees of some draws, in order."""
        arrays, links = self.arrays, self.links
        trees = (which[:, None] * self.trees + np.arange(self.trees)).reshape(-1)
        nodes = _ranges(links.roots[trees], links.roots[trees + 1])
        is_split = arrays["rules"][nodes] > 0
        cut = links.cut[links.split_of[nodes[is_split]]]
        cuts, places = np.unique(cut, return_inverse=True)
        kept = arrays | {
            "sizes": arrays["sizes"][trees],
            "rules": arrays["rules"][nodes],
            "cuts": cuts,
            "places": smallest(places.reshape(-1)),
            "values": arrays["values"][links.leaf[nodes[~is_split]]],
        }
        for name, by in (("seeds", which), ("bandwidths", trees)):
            if name in arrays:
                kept[name] = arrays[name][by]
        return PackedForest(kept, self.about | {"draws": len(which)})


def smallest(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers in the smallest unsigned type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _require(holds) -> None:
    if not holds:
        raise ValueError("its arrays are not those of a forest")


def _ranges(starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Numbers from each start up to its stop, one range after another."""
    lengths = stops - starts
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(int(lengths.sum())) + shift


def _by_depth(links: Links, is_split: np.ndarray) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    nodes = links.roots[:-1]
    while True:
        nodes = nodes[is_split[nodes]]
        if not nodes.size:
            return found
        of = links.split_of[nodes]
        found.append(of)
        nodes = np.concatenate([nodes + 1, links.right[of]])


def _depth(links: Links, is_split: np.ndarray) -> int:
    return len(_by_depth(links, is_split))
