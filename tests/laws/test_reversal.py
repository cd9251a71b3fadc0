"""Ratios of the moves against the definition, on random trees, whole tree from scratch.

The slow twin (`support.naive.slow`) computes the prior of both whole trees and the probability of
every choice of the move in both directions; the kernels must agree to rounding (1e-9), there is no
Monte Carlo error. Going there and back must give opposite ratios.
"""

import math
from functools import partial

import numpy as np
import pytest
from support import oracle as o
from support.chains import ALL_MOVES, sweep_on, with_weights
from support.laws.bench import ATOL, Bench, check_kept
from support.laws.ratios import ratios_of, ratios_of_perturb
from support.naive import slow
from support.naive.laws import EVERY, PROBLEMS
from support.tiers import tiers

import pymc_trees.core.moves.rotate as rotate_module
from pymc_trees.core.columns.design import any_column_varies
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.moves.grow_prune import log_grow_ratio
from pymc_trees.core.moves.perturb import Perturb, perturb
from pymc_trees.core.moves.rotate import Rotate
from pymc_trees.core.moves.subtree import (
    commit,
    load_subtree,
    log_current,
    log_proposed,
    log_proposed_choice,
)
from pymc_trees.core.moves.swap import exchange_rules
from pymc_trees.core.priors.contract import NodeContext

NAMES = ["repeats", "binary_constant", "three_columns", "deep", "grid", "levels", "mixed_grid"]
NAMES += ["missing", "onehot"]
WEIGHTS = np.array([0.3, 0.15, 0.35, 0.2])  # all different, so that none can stand for another


@pytest.fixture(params=tiers(NAMES, quick=["deep", "mixed_grid"]))
def problem(request):
    return EVERY[request.param]


def test_the_census_counts_the_whole_tree(problem, rng):
    for _ in range(60):
        bench = Bench(problem, rng)
        found, census = bench.counts(bench.root), bench.census
        assert census.splittable_leaves == len(found.splittable_leaves)
        assert census.splits == len(found.splits) == len(found.pairs) + (len(found.splits) > 0)
        assert census.nogs == len(found.nogs)
        assert census.n_nodes == len(slow.visits(bench.root, bench.cells))


def rules(bench, rows, rng):
    """A rule of every column that varies in a node, drawn apart from the kernels."""
    for j in slow.varying(bench.cells, rows, bench.weights):
        if slow.kinds_of(bench.cells) is not None:
            yield slow.draw_rule(rng, bench.cells, rows, j)
            continue
        values = bench.cells[list(rows), j]
        cut = rng.uniform(values.min(), values.max())
        yield j, float(math.floor(cut) if bench.setup.design.is_grid else cut)


def test_grow_ratio_is_that_of_the_definition(problem, rng):
    tried = 0
    for _ in range(40):
        bench = Bench(problem, rng)
        before, work = bench.root, bench.setup.work
        offered = bench.counts(before)
        for node, depth, rows, parent in slow.visits(before, bench.cells):
            if node.place not in offered.splittable_leaves:
                continue
            for column, cut in rules(bench, rows, rng):
                split = slow.Split(column, cut, slow.Leaf(-2), slow.Leaf(-3), node.place)
                after = slow.replace(before, node.place, lambda _, s=split: s)
                reverse = bench.counts(after)
                log_there = math.log(
                    slow.move_probabilities(offered, WEIGHTS)[0] / len(offered.splittable_leaves)
                ) + slow.log_rule(bench.cells, rows, bench.weights, column, cut)
                log_back = math.log(
                    slow.move_probabilities(reverse, WEIGHTS)[1] / len(reverse.nogs)
                )
                exact = bench.log_prior(after) - bench.log_prior(before) + log_back - log_there
                left = [i for i in rows if slow.goes_left(bench.cells, i, column, cut)]
                right = [i for i in rows if i not in left]
                unsplittable = []
                for side in (left, right):
                    work.rows[: len(side)] = side
                    unsplittable.append(
                        not any_column_varies(bench.setup.design, work.rows, 0, len(side))
                    )
                ratio = log_grow_ratio(
                    bench.setup.prior,
                    NodeContext(depth, 0.0, 0.0, False),
                    *(NodeContext(depth + 1, 0.0, 0.0, side) for side in unsplittable),
                    with_weights(*WEIGHTS),
                    bench.census,
                    parent is not None and parent.place in offered.nogs,
                )
                assert ratio == pytest.approx(exact, abs=ATOL)
                tried += 1
    assert tried > 30


def replaced_terms(bench, top, subtree):
    """`log_proposed` with the rule of the top node; without it, it must lack just that rule."""
    work = bench.setup.work
    args = (bench.problem, subtree, work)
    below = log_proposed(*args, False) if bench.top_is_possible(top) else None
    whole = log_proposed(*args, True)
    if whole > -math.inf:
        rule = work.log_cut[top] + work.log_column[top]
        assert below + rule == pytest.approx(whole, abs=ATOL)
    return whole


def there_and_back(bench, top, edit, undo):
    """Check one edit of the rules below ``top`` in both directions; False when impossible."""
    trees, work = bench.trees, bench.setup.work
    before = bench.root
    subtree = load_subtree(trees, top, work)
    assert trees.count[top] == len(
        next(v.rows for v in slow.visits(before, bench.cells) if v.node.place == top)
    )
    current = log_current(bench.problem, subtree, work)
    edit()
    after = bench.root
    replaced = replaced_terms(bench, top, subtree)
    exact = bench.log_target(after) - bench.log_target(before)
    if exact == -math.inf:
        assert replaced == -math.inf
        undo()
        assert slow.shape_of(bench.root) == slow.shape_of(before)
        return False
    assert replaced - current == pytest.approx(exact, abs=ATOL)
    choice = log_proposed_choice(trees, with_weights(*WEIGHTS), bench.census, subtree, work)
    there = slow.move_probabilities(bench.counts(before), WEIGHTS)
    back = slow.move_probabilities(bench.counts(after), WEIGHTS)
    for kind in (2, 3) if there[3] > 0 else (2,):
        assert choice == pytest.approx(math.log(back[kind] / there[kind]), abs=ATOL)

    commit(trees, 0, subtree, work)
    check_kept(bench)
    bench.open()
    subtree = load_subtree(trees, top, work)
    current = log_current(bench.problem, subtree, work)
    undo()
    reverse = replaced_terms(bench, top, subtree)
    reverse_choice = log_proposed_choice(trees, with_weights(*WEIGHTS), bench.census, subtree, work)
    assert reverse - current + exact == pytest.approx(0.0, abs=ATOL)
    assert reverse_choice + choice == pytest.approx(0.0, abs=ATOL)
    commit(trees, 0, subtree, work)
    assert slow.shape_of(bench.root) == slow.shape_of(before)
    check_kept(bench)
    bench.open()
    return True


def test_change_ratio_is_that_of_the_definition_and_reverses(problem, rng):
    possible = 0
    for _ in range(40):
        bench = Bench(problem, rng)
        for node, _, rows, _ in slow.visits(bench.root, bench.cells):
            if isinstance(node, slow.Leaf):
                continue
            for rule in rules(bench, rows, rng):
                place, old = node.place, (node.column, node.cut)

                def put(rule, place=place, trees=bench.trees):
                    trees.column[place], trees.cut[place] = rule

                possible += there_and_back(bench, place, partial(put, rule), partial(put, old))
    assert possible > 20


def test_swap_ratio_is_that_of_the_definition_and_reverses(problem, rng):
    possible = 0
    for _ in range(150):
        bench = Bench(problem, rng)
        for child in bench.counts(bench.root).pairs:
            swap = partial(exchange_rules, bench.trees, child)
            possible += there_and_back(bench, bench.trees.parent[child], swap, swap)
    assert possible > 0


def test_exchange_takes_both_children_that_carry_the_same_rule(rng):
    """Grid trees meet equal rules; the pair of children then moves as one, and comes back."""
    problem, met = PROBLEMS["grid"], 0
    for _ in range(400):
        bench = Bench(problem, rng)
        trees = bench.trees
        for child in bench.counts(bench.root).pairs:
            top = trees.parent[child]
            left, right = trees.left[top], trees.right[top]
            same = trees.column[left] == trees.column[right] >= 0
            same = same and trees.cut[left] == trees.cut[right]
            before = slow.shape_of(bench.root)
            rule = (trees.column[top], trees.cut[top])
            exchange_rules(trees, child)
            moved = [(trees.column[k], trees.cut[k]) == rule for k in (left, right)]
            assert all(moved) if same else sum(moved) == 1
            exchange_rules(trees, child)
            assert slow.shape_of(bench.root) == before
            met += same
    assert met > 5


def test_perturb_accepts_by_the_ratio_of_the_definition(problem, rng, monkeypatch):
    """Its steps are symmetric (`test_perturb`): posterior of both trees and choice are all."""
    ratios = ratios_of_perturb(monkeypatch)
    moves, sizes = with_weights(0.3, 0.1, 0.05, 0.05, 0.5), []
    for _ in range(60):
        bench = Bench(problem, rng)
        for _ in range(4):
            before, work = bench.root, bench.setup.work
            if bench.census.splits == 0:
                break
            args = (Perturb(1.0), rng, bench.problem, 0, moves, bench.census, work)
            changed = perturb.py_func(*args)
            after = bench.root
            assert changed == len(ratios)
            if changed == 0:
                assert slow.shape_of(before) == slow.shape_of(after)
                continue
            exact = bench.log_target(after) - bench.log_target(before)
            there, back = (offered(bench, root, moves.weights) for root in (before, after))
            assert ratios.pop() == pytest.approx(exact + math.log(there / back), abs=ATOL)
            sizes.append(len(slow.leaves_of(after, bench.cells)))
            check_kept(bench)
            bench.open()
    assert len(sizes) > 30 and max(sizes) > 2


def visit_of(bench, root, place):
    """A node of a tree, its depth and rows."""
    return next(v for v in slow.visits(root, bench.cells) if v.node.place == place)


def ways_to_join(root):
    """Sides on which both children of a node have a leaf."""
    sides = ((root.left.left, root.right.left), (root.left.right, root.right.right))
    return sum(isinstance(a, slow.Leaf) and isinstance(b, slow.Leaf) for a, b in sides)


def share_of_cut(bench, root, place):
    """Probability, or density, of a node's cut among those that part its rows alike."""
    node, _, rows, _ = visit_of(bench, root, place)
    way, column = divmod(int(node.column), bench.cells.shape[1])
    if way >= 2 or abs(node.cut) == slow.EVERY:
        return 1.0
    values = bench.cells[list(rows), column]
    values = values[values != slow.MISSING]
    return 1 / (values[values > node.cut].min() - values[values <= node.cut].max())


def log_choices(bench, before, after, top, child):
    """Log of the possible ratios of the choices of a rotation back and there."""
    n, n_after = (len(bench.counts(root).pairs) for root in (before, after))
    old, new = (visit_of(bench, root, top).node for root in (before, after))
    if n_after == n:
        return [0.0]
    if n_after < n:  # a join: the rule of the sibling goes
        sibling = old.right if old.left.place == child else old.left
        ways = n * ways_to_join(old) / (2 * n_after)
        return [math.log(ways * share_of_cut(bench, before, sibling.place))]
    # a part: on a grid the new rule may be the old one too, and either node the new one
    nodes = [a for a, b in ((new.left, new.right), (new.right, new.left)) if b.cut == old.cut]
    ways = 2 * n / (n_after * ways_to_join(new))
    return [math.log(ways / share_of_cut(bench, after, node.place)) for node in nodes]


def test_rotate_accepts_by_the_ratio_of_the_definition(problem, rng, monkeypatch):
    """Twelve rotations from each of 40 trees; where one is refused, the tree is what it was."""
    ratios, moves = (
        ratios_of(rotate_module, monkeypatch),
        with_weights(0.25, 0.1, 0.05, 0.15, 0.3, 0.15),
    )
    met = {-1: 0, 0: 0, 1: 0}
    for _ in range(40):
        bench = Bench(problem, rng)
        for _ in range(12):
            before, pairs = bench.root, bench.counts(bench.root).pairs
            if not pairs:
                break
            child = int(rng.choice(pairs))
            monkeypatch.setattr(rotate_module, "draw_node", lambda *_, child=child: child)
            top = int(bench.trees.parent[child])
            ratios.refuse = bool(rng.random() < 0.3)
            args = (Rotate(), rng, bench.problem, 0, moves, bench.census, bench.setup.work)
            changed = rotate_module.rotate.py_func(*args)
            after = bench.root
            check_kept(bench)
            assert changed == (len(ratios) > 0 and not ratios.refuse)
            if not changed:
                assert slow.shape_of(before) == slow.shape_of(after)
                ratios.clear()
                continue
            bench.open()
            there, back = (offered(bench, root, moves.weights) for root in (before, after))
            exact = bench.log_target(after) - bench.log_target(before) + math.log(there / back)
            found = ratios.pop() - exact
            choices = log_choices(bench, before, after, top, child)
            assert min(abs(found - choice) for choice in choices) < ATOL
            met[len(bench.counts(after).pairs) - len(pairs)] += 1
    assert sum(met.values()) > 40, met
    # On "repeats" each rule of a child sends all rows of its sibling one way.
    assert min(met.values()) > 0 or problem is EVERY["repeats"], met


def offered(bench, root, weights):
    """Sum of the weights of the moves of the package that a tree allows."""
    found = bench.counts(root)
    able = [
        found.splittable_leaves,
        found.nogs,
        found.splits,
        found.pairs,
        found.splits,
        found.pairs,
    ]
    able.append(found.splits)
    return sum(w for w, some in zip(weights, able) if some)


def test_nodes_keep_the_truth_through_long_runs(problem, rng):
    """`check_kept` after every of 300 sweeps of all moves."""
    bench = Bench(problem, rng)
    work, made = bench.setup.work, np.zeros(len(ALL_MOVES.moves))
    leaf = bench.leaf._replace(r=problem.y - bench.trees.values[bench.trees.leaf_of[0], 0])
    for _ in range(300):
        made += sweep_on(rng, bench.problem._replace(leaf=leaf), ALL_MOVES, work)[0]
        check_kept(bench)
    assert (made > 0).all()
    assert preorder(bench.trees, 0, work.nodes) == len(slow.visits(bench.root, bench.cells))
    assert isinstance(bench.likelihood, o.NormalLeaf)
