"""Code of pages that samples as its readers would, with few draws."""

import functools

import pymc as pm

import pymc_trees as pmt


def sample_few(monkeypatch, draws: int) -> None:
    """Have `pymc.sample` make few draws, whatever it is asked for; nothing else is changed."""
    assert callable(pmt.BART)  # the first name puts on the wrappers, one of them on pm.sample
    few = {"draws": draws, "tune": draws, "chains": 2, "cores": 1, "progressbar": False}
    sample = pm.sample

    @functools.wraps(sample)
    def short(**asked):  # by the estimators too, which name their numbers of draws
        return sample(**{**asked, **few, "random_seed": 1})

    monkeypatch.setattr(pm, "sample", short)
