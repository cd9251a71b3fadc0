"""Where in `pymc.sample` an interrupt of a model with trees is answered."""

import signal

import pymc as pm
import pymc.sampling.mcmc as mcmc
import pytest
from support.small_models import bart_model, sample


@pytest.fixture
def interrupted(monkeypatch):
    """Interrupt while steps are assigned; a list of what was reached after it."""
    reached, assign = [], mcmc.assign_step_methods

    def wrapped(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        reached.append("assigned")
        return assign(*args, **kwargs)

    monkeypatch.setattr(mcmc, "assign_step_methods", wrapped)
    return reached


def test_while_sampling_is_prepared_it_waits_for_the_draws(quick_compile, interrupted):
    before, draws = signal.getsignal(signal.SIGINT), []
    with bart_model(), pytest.raises(KeyboardInterrupt):
        sample(callback=lambda trace, draw: draws.append(draw))
    assert interrupted == ["assigned"] and not draws
    assert signal.getsignal(signal.SIGINT) is before


def test_models_without_trees_are_left_alone(quick_compile, interrupted):
    with pm.Model(), pytest.raises(KeyboardInterrupt):
        pm.Normal("x")
        sample()
    assert not interrupted


def test_between_two_draws_it_ends_the_run_and_keeps_the_draws(quick_compile):
    def interrupt(trace, draw):
        if not draw.tuning and draw.draw_idx == 24:
            signal.raise_signal(signal.SIGINT)

    with bart_model(sigma=None):
        idata = sample(20, 20, chains=1, callback=interrupt)
    assert idata.posterior.sizes["draw"] == 5
