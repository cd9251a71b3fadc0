"""A step method run by hand, and two runs compared to the last bit."""

import numpy as np

import pymc_trees as pmt


def tempered(**given):
    """`Tempering` with fixed temperatures: nothing adapts."""
    step = pmt.Tempering(pmt.CGM(model=given["model"]), [1.0, 1.7, 4.0], **given)
    step.setup_chain(np.random.default_rng(5), 0, 1)
    return step


def go(step, point, times, disturb=None):
    """Points of some steps, with something else done to the point between them."""
    points, stats = [], []
    for k in range(times):
        if disturb is not None:
            point = disturb(k, point)
        point, [stat] = step.step(point)
        points.append({name: np.copy(value) for name, value in point.items()})
        stats.append(stat)
    return points, stats


def assert_same(a, b):
    for one, two in zip(a[0], b[0], strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])
    for one, two in zip(a[1], b[1], strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])
