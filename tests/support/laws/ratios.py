"""Ratios that a move accepts by, without their being drawn for: its kernels run as Python."""

from pymc_trees.core.moves import change, perturb


def ratios_of_perturb(monkeypatch):
    """List to which `perturb`, and no other move, adds the log ratios it accepts; it accepts all.

    The move is called as ``perturb.perturb.py_func``.
    """
    found = []

    def accepts(rng, log_ratio):
        found.append(log_ratio)
        return True

    monkeypatch.setattr(change, "accepts", accepts)
    for name in ("change_nog", "change_subtree"):
        monkeypatch.setattr(change, name, getattr(change, name).py_func)
    monkeypatch.setattr(perturb, "replace_rule", change.replace_rule.py_func)
    return found


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
