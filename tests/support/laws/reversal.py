"""Moves against the definition, on random trees, whole tree from scratch: one function a move.

The slow twin (`support.naive.slow`) computes the prior of both whole trees and the probability of
every choice of the move in both directions; the kernels must agree to rounding, and going there and
back must give opposite ratios. Moves that draw within their kernels run as Python, and are asked
for the ratios that they accept by.
"""

import math
from functools import partial

import numpy as np
import pytest

import pymc_trees.core.moves.restructure as restructure_module
import pymc_trees.core.moves.rotate as rotate_module
from pymc_trees.core.columns.design import any_column_varies
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.contract import swap_residual
from pymc_trees.core.moves import change as change_module
from pymc_trees.core.moves import perturb as perturb_module
from pymc_trees.core.moves.grow_prune import log_grow_ratio
from pymc_trees.core.moves.perturb import Perturb
from pymc_trees.core.moves.problem import Problem, count_nodes, ensure_rows
from pymc_trees.core.moves.restructure import Restructure, leaf_blocks, log_rules, log_same_leaves
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
from pymc_trees.core.samplers.prior_draw import draw_tree
from support.chains import PERTURB, with_weights
from support.laws import mondrian
from support.laws.bench import ATOL, Bench, check_kept
from support.naive import same_leaves, slow
from support.naive.laws import EVERY, PROBLEMS

WEIGHTS = np.array([0.3, 0.15, 0.35, 0.2])  # all different, so that none can stand for another
RESTRUCTURE = with_weights(0.2, 0.1, 0.1, 0.05, 0.1, 0.05, 0.4)


class Ratios(list):
    """Log ratios as they are met, each to be accepted unless `refuse`."""

    refuse = False


def ratios_of(move, monkeypatch):
    """List to which the module of a move adds the log ratios that it decides by.

    The move is called as ``py_func``.
    """
    found = Ratios()

    def accepts(rng, log_ratio):
        found.append(log_ratio)
        return not found.refuse

    monkeypatch.setattr(move, "accepts", accepts)
    return found


def ratios_of_perturb(monkeypatch):
    """List to which `perturb`, and no other move, adds the log ratios it accepts; it accepts all.

    The move is called as ``py_func``.
    """
    found = []

    def accepts(rng, log_ratio):
        found.append(log_ratio)
        return True

    monkeypatch.setattr(change_module, "accepts", accepts)
    for name in ("change_nog", "change_subtree"):
        monkeypatch.setattr(change_module, name, getattr(change_module, name).py_func)
    monkeypatch.setattr(perturb_module, "replace_rule", change_module.replace_rule.py_func)
    return found


def rules(bench, rows, rng):
    """A rule of every column that varies in a node, drawn apart from the kernels."""
    for j in slow.varying(bench.cells, rows, bench.weights):
        if slow.kinds_of(bench.cells) is not None:
            yield slow.draw_rule(rng, bench.cells, rows, j)
            continue
        values = bench.cells[list(rows), j]
        cut = rng.uniform(values.min(), values.max())
        yield j, float(math.floor(cut) if bench.setup.design.is_grid else cut)


def grow(name, rng, monkeypatch):
    problem = EVERY[name]
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


def change(name, rng, monkeypatch):
    problem = EVERY[name]
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


def swap(name, rng, monkeypatch):
    problem = EVERY[name]
    possible = 0
    for _ in range(150):
        bench = Bench(problem, rng)
        for child in bench.counts(bench.root).pairs:
            there = partial(exchange_rules, bench.trees, child)
            possible += there_and_back(bench, bench.trees.parent[child], there, there)
    assert possible > 0


def perturb(name, rng, monkeypatch):
    """Its steps are symmetric: posterior of both trees and choice are all."""
    problem = EVERY[name]
    ratios = ratios_of_perturb(monkeypatch)
    moves, sizes = with_weights(0.3, 0.1, 0.05, 0.05, 0.5), []
    for _ in range(60):
        bench = Bench(problem, rng)
        for _ in range(4):
            before, work = bench.root, bench.setup.work
            if bench.census.splits == 0:
                break
            args = (Perturb(1.0), rng, bench.problem, 0, moves, bench.census, work)
            changed = perturb_module.perturb.py_func(*args)
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


def rotate(name, rng, monkeypatch):
    """Twelve rotations from each of 40 trees; where one is refused, the tree is what it was."""
    problem = EVERY[name]
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


def density_of(bench, root):
    return same_leaves.log_density(root, bench.cells, bench.weights, bench.setup.design.is_grid)


def kernel_density(bench):
    """Log density of the tree of a bench by the kernels."""
    work = bench.setup.work
    subtree = load_subtree(bench.trees, bench.trees.roots[0], work)
    blocks = leaf_blocks(bench.problem, subtree, work)
    found = log_same_leaves(bench.problem, subtree, blocks, work)
    return found + log_rules(bench.trees.column, bench.trees.log_cut, work.below, subtree.n_nodes)


def restructure(name, rng, monkeypatch):
    """Six from each of 40 trees; every leaf keeps its rows, and its place; refused, all else too.

    Each split is drawn from a density that the definition gives, which is that of the tree that was
    left when the move starts from the tree it led to: so the ratio of the way back is the inverse.
    """
    problem = EVERY[name]
    ratios, sizes = ratios_of(restructure_module, monkeypatch), []
    for _ in range(40):
        bench = Bench(problem, rng)
        for _ in range(6):
            before = bench.root
            if bench.census.splits == 0:
                break
            assert kernel_density(bench) == pytest.approx(density_of(bench, before), abs=ATOL)
            ratios.refuse = bool(rng.random() < 0.3)
            given = (bench.problem, 0, RESTRUCTURE, bench.census, bench.setup.work)
            changed = restructure_module.restructure.py_func(Restructure(), rng, *given)
            after = bench.root
            check_kept(bench)
            assert changed == (len(ratios) == 1 and not ratios.refuse)
            if not changed:
                assert slow.shape_of(before) == slow.shape_of(after)
                ratios.clear()
                continue
            bench.open()
            assert leaves_by_place(bench, before) == leaves_by_place(bench, after)
            exact = bench.log_prior(after) - bench.log_prior(before)
            exact += density_of(bench, before) - density_of(bench, after)
            assert ratios.pop() == pytest.approx(exact, abs=ATOL)
            if slow.shape_of(before) != slow.shape_of(after):
                sizes.append(len(slow.leaves_of(after, bench.cells)))
    assert len(sizes) > 40 and max(sizes) > 3


def leaves_by_place(bench, root):
    found = slow.visits(root, bench.cells)
    return {v.node.place: v.rows for v in found if isinstance(v.node, slow.Leaf)}


def log_timed(problem, trees, node, rows, start, lifetime):
    """Log of prior and likelihood below a node, from the definition of the process."""
    X = problem.X[rows]
    rate = np.ptp(X, axis=0).sum()
    column, cut, time = trees.column[node], trees.cut[node], trees.time[node]
    if column < 0:
        return problem.normal()(tuple(rows.tolist())) - rate * (lifetime - start)
    extent = np.ptp(X[:, column])
    assert start < time < lifetime and X[:, column].min() <= cut < X[:, column].max()
    left = X[:, column] <= cut
    total = np.log(rate) - rate * (time - start) + np.log(extent / rate) - np.log(extent)
    for child, side in ((trees.left[node], left), (trees.right[node], ~left)):
        total += log_timed(problem, trees, child, rows[side], time, lifetime)
    return total


def perturb_of_a_process(name, rng, monkeypatch):
    """Under a Mondrian process all times stay."""
    ratios, problem, tried = ratios_of_perturb(monkeypatch), PROBLEMS[name], 0
    every, lifetime = np.arange(problem.n), mondrian.LIFETIMES[name]
    for _ in range(60):
        _, design, prior, leaf, work = mondrian.timed_setup(name)
        trees = make_trees(1, work.nodes.size, 1, problem.n)
        assert draw_tree(rng, trees, 0, design, prior, work.rows, work.buffer)
        leaf = leaf._replace(r=problem.y.copy())
        work.rows_valid[:] = False
        for _ in range(4):
            census = count_nodes(trees, 0, work.nodes)
            ensure_rows(trees, 0, census.n_nodes, work)
            swap_residual(leaf, trees, -1, 0, work.nodes, census.n_nodes, work.stats)
            if census.splits == 0:
                break
            before = log_timed(problem, trees, 0, every, 0.0, lifetime)
            given = (Problem(trees, design, prior, leaf), 0, PERTURB, census, work)
            if perturb_module.perturb.py_func(Perturb(1.0), rng, *given):
                exact = log_timed(problem, trees, 0, every, 0.0, lifetime) - before
                assert ratios.pop() == pytest.approx(exact, abs=1e-9)  # the choice ratio is 1
                tried += census.splits > 1
    assert tried > 10
