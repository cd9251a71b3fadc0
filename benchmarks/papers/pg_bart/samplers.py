"""What is compared: the steps of one iteration, by name."""

from typing import NamedTuple

import pymc_trees as pmt


class Sampler(NamedTuple):
    """Steps made in turn, each so many times; ``family`` is the paper's sampler, if it has it."""

    steps: tuple
    family: str | None = None


def _pg(**options):
    return pmt.ParticleGibbs, options, 1


def _cgm(times):
    return pmt.CGM, {}, times


SAMPLERS = {
    "CGM": Sampler((_cgm(1),), "CGM"),
    "GrowPrune": Sampler(((pmt.GrowPrune, {}, 1),), "GrowPrune"),
    "PG": Sampler((_pg(num_particles=10),), "PG"),
    "PG 100": Sampler((_pg(num_particles=100),)),
    "PG optimal": Sampler((_pg(num_particles=10, proposal="optimal"),)),
    "PG optimal 2": Sampler((_pg(num_particles=2, proposal="optimal"),)),
    "Hybrid": Sampler(((pmt.Hybrid, {}, 1),)),
    "Hybrid 50": Sampler(((pmt.Hybrid, {"local_sweeps": 50}, 1),)),
    "50 CGM": Sampler((_cgm(50),)),
    "50 CGM, PG": Sampler((_cgm(50), _pg(num_particles=10))),
    "50 CGM, PG optimal 2": Sampler((_cgm(50), _pg(num_particles=2, proposal="optimal"))),
}


def make_steps(name, model, rng, n_warmup, n_draws):
    """List of (step, times), ready for a chain."""
    made = []
    for (kind, options, times), generator in zip(
        SAMPLERS[name].steps, rng.spawn(len(SAMPLERS[name].steps))
    ):
        step = kind(model=model, **options)
        step.setup_chain(generator, n_warmup, n_draws)
        made.append((step, times))
    return made
