"""`sample_until`: chains that go on until they have reached what is asked of them."""

import json
import logging
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, time
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number, check_positive, check_seed, seconds_of
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.inference.chains.sample import (
    check_cores,
    check_data,
    check_options,
    digest_of_data,
    resume,
    sample_chains,
)
from pymc_trees.inference.chains.states import GROUP, Checkpoint
from pymc_trees.posterior.draws import check_draws
from pymc_trees.posterior.goals import Goal, Reached, reached, variables_of
from pymc_trees.posterior.pool import CHAINS
from pymc_trees.predictors.file import check_path

_log = logging.getLogger("pymc.trees")

ABOUT = "sample_until"
"""Attribute of the result."""
DRAWS, MOST_DRAWS = 250, 10_000
"""Draws of a chain before the first judgement, and the most."""
PIECES = 10
"""How often in a piece the time is looked at."""
FAR = 3.0
"""Times what is left of the time, from which on a goal counts as out of reach."""
SAVED = 0.25
"""Share of the time that has to be left for that: a run uses up what little is left."""
LARGE = 20_000
"""Rows from which on a grid of cuts is proposed."""
FAILED = "failed"
"""Why a run ended in which a chain did."""


def sample_until(
    model=None,
    r_hat=1.01,
    ess=400,
    of: Sequence[str] | None = None,
    pooled: float | None = 0.03,
    max_time: str | float = "20min",
    checkpoint=None,
    *,
    chains=4,
    draws=DRAWS,
    tune=1000,
    max_draws=MOST_DRAWS,
    random_seed=None,
    cores=-1,
    progressbar=True,
    **options,
) -> xr.DataTree:
    """Sample until chains have reached what is asked of them, or cannot.

    Chains run in pieces, as by `sample_chains` and `resume`, and are judged after each. The run
    ends when every variable of ``of`` has the R-hat and ESS asked for. For functions of trees the
    pool of all chains also counts, where R-hat cannot be reached in time: its verdict, and a
    pooled sd of f that changes by at most ``pooled`` from the first half of the draws to the
    second. The run ends early if a goal cannot be reached, and says what would help.

    Parameters
    ----------
    model : pymc.Model, optional
        Default: the model on the context stack.
    r_hat : float, default 1.01
        Largest R-hat, over entries and over up to 50 rows of a function (Vehtari et al. 2021).
    ess : float, default 400
        Smallest effective sample size of all chains, bulk and tail.
    of : sequence of str, optional
        Variables that are judged: free variables, Deterministics among the draws, and functions of
        trees, recorded or not. Default: all free variables, trees by their function.
    pooled : float or None, default 0.03
        Largest relative change of the pooled sd of a function of trees; None to ask for R-hat.
    max_time : str or float, default "20min"
        Time for this call, such as "90s", "20min" or "2h", or seconds. It is looked at ten times
        in a piece, so that the run may take somewhat longer.
    checkpoint : str or path, optional
        File of all draws so far, one for each model with its data. If it exists, the run goes on
        from it, with the chains, tuning and seed of the file. Default: none.
    chains : int, default 4
        Number of chains; the pool takes four or more.
    draws : int, default 250
        Draws of each chain before the first judgement.
    tune : int, default 1000
        Tuning iterations before them.
    max_draws : int, default 10000
        Draws of each chain after which the run ends.
    random_seed, cores, progressbar
        As for `sample_chains`.
    **options
        Other arguments of `pymc.sample`, such as ``step`` and ``target_accept``.

    Returns
    -------
    xarray.DataTree
        As `pymc.sample` returns it; `resume` can go on. The attribute "sample_until" says as JSON
        what was asked, what was reached by each variable, and why the run ended: "reached",
        "time", "draws", "cannot", "interrupted" or "failed".

    Raises
    ------
    ValueError
        For arguments out of range, a variable that does not exist, and a checkpoint of another
        model or of other data.
    TypeError
        For an argument that `pymc.sample` does not have.

    Warns
    -----
    UserWarning
        When the run ends before its goal, with what was reached and what would help.

    Notes
    -----
    The draws are bit for bit those of one `pymc.sample` of the same length: when to stop is
    decided, nothing is selected. After an interrupt the result holds the chains up to where all of
    them were last looked at, and after the failure of a chain those before the piece in which it
    failed.

    How long it will take is estimated from ESS in proportion to the draws, and R-hat**2 - 1 in
    inverse proportion. A run whose estimate is more than three times what is left ends early, if
    that saves a quarter of the time or more.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021). Rank-normalization, folding, and
    localization: an improved R-hat. Bayesian Analysis 16(2).

    Examples
    --------
    >>> import json, numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model():
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.5, observed=X[:, 0], shape=mu.shape)
    ...     idata = pmt.sample_until(
    ...         r_hat=1.2, ess=20, chains=2, draws=50, tune=50, cores=1, random_seed=1,
    ...         progressbar=False)
    >>> json.loads(idata.attrs["sample_until"])["ended"]
    'reached'
    """
    model = pm.modelcontext(model)
    goal = _checked_goal(r_hat, ess, pooled)
    names = variables_of(model, of, options.get("var_names"))
    draws, tune = check_number("draws", draws, 4), check_number("tune", tune, 0)
    most = check_number("max_draws", max_draws, draws)
    chains = check_number("chains", chains, 2)
    seconds = seconds_of(max_time)
    check_cores(cores)
    check_seed(random_seed)
    check_options("sample_until", options)
    options.pop("compute_convergence_checks", None)
    if not progressbar:
        options.setdefault("quiet", True)
    path = None if checkpoint is None else check_path("checkpoint", checkpoint)
    run = _Run(model, goal, names, monotonic() + seconds, path)
    run.options = options | {"cores": cores, "progressbar": progressbar}
    first = {"chains": chains, "draws": draws, "tune": tune, "random_seed": random_seed}
    return run.to_the_end(first, most)


def _checked_goal(r_hat, ess, pooled) -> Goal:
    r_hat, ess = check_positive("r_hat", r_hat), check_positive("ess", ess)
    if r_hat <= 1:
        raise ValueError(f"r_hat={r_hat!r}: must be above 1, such as 1.01.")
    return Goal(r_hat, ess, None if pooled is None else check_positive("pooled", pooled))


class _Watch(Checkpoint):
    """Ends a piece when the time is over, and writes the file if there is one."""

    path: Path | None  # type: ignore[assignment]

    def __init__(self, path: Path | None, until: float):
        self.path, self.until, self.is_over = path, until, False
        self.start, self.warned = time(), False
        self.looks: list[tuple[float, int]] = []

    def of_run(self, every, total, merged=lambda new: new):
        """Itself, for a run of so many iterations."""
        self.every, self.merged = -(-total // PIECES) if every is None else every, merged
        return self

    def write_traces(self, traces, tune, settings):
        """Write the draws so far, and stop if the time is over."""
        self.looks.append((monotonic(), max(len(trace) for trace in traces)))
        if self.path is not None:
            super().write_traces(traces, tune, settings)
        if monotonic() > self.until:
            self.is_over = True
            raise KeyboardInterrupt

    @property
    def seconds_an_iteration(self) -> float:
        """Between looks, without what is compiled before the first; NaN of fewer than two."""
        if len(self.looks) < 2:
            return math.nan
        (begun, first), (ended, last) = self.looks[0], self.looks[-1]
        return (ended - begun) / (last - first) if last > first else math.nan

    def write(self, idata):
        """Write the file, if there is one."""
        if self.path is not None:
            super().write(idata)


class _Piece(NamedTuple):
    """A piece of all chains."""

    idata: xr.DataTree
    ended: str
    """Why it is not whole; empty if it is. Draws of an interrupt or a failure may be lost."""


class _Run:
    """A run that is judged after each piece."""

    options: dict[str, Any]

    def __init__(self, model, goal: Goal, names: list[str], until: float, path: Path | None):
        self.model, self.goal, self.names, self.until, self.path = model, goal, names, until, path
        self.seconds_a_draw, self.begun = math.nan, monotonic()

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.until - monotonic()

    def to_the_end(self, first: dict, most: int) -> xr.DataTree:
        """Pieces until the goal is reached or cannot be."""
        idata: xr.DataTree | None = None
        if self.path is not None and self.path.exists():
            with xr.open_datatree(self.path, engine="h5netcdf") as stored:
                idata = stored.load()
            self._check_file(idata)
            if self._was_reached(idata):
                return idata
        found: list[Reached] = []
        looks = 0
        while True:
            n_drawn = draws_in(idata)
            if idata is not None and n_drawn:
                judged = self._judged(idata)
                if judged is None:
                    ended = "interrupted"
                    break
                found, looks = judged, looks + 1
                ended = self._ended(found, looks, n_drawn, most)
                self._report(found, n_drawn, ended)
                if ended:
                    break
                n = self._next(found, n_drawn, most)
            else:
                n = first["draws"]
            piece = self._draw(idata, n, first)
            idata = piece.idata
            if piece.ended:
                if draws_in(idata) > n_drawn:
                    found = self._judged(idata) or []
                is_enough = piece.ended != FAILED and self._are_enough(found)
                ended = "reached" if is_enough else piece.ended
                break
        assert idata is not None
        return self._result(idata, found, ended)

    def _judged(self, idata: xr.DataTree) -> list[Reached] | None:
        """What was reached; None after an interrupt, which leaves the draws as they are."""
        try:
            return reached(idata, self.model, self.names)
        except KeyboardInterrupt:
            return None

    def _check_file(self, idata: xr.DataTree) -> None:
        if GROUP not in idata.children:
            raise ValueError(
                f"checkpoint={str(self.path)!r} holds no states from which chains go on: give "
                "another name, or remove the file."
            )
        why: ValueError | None = None
        try:
            check_data(idata, self.model)
            if "posterior" in idata.children:
                check_draws(idata, self.model)
        except ValueError as error:
            why = error
        # a run that ended in tuning holds no data
        digest = digest_of_data(self.model)
        if why or json.loads(idata.attrs.get(ABOUT, "{}")).get("data", digest) != digest:
            raise ValueError(
                f"checkpoint={str(self.path)!r} holds chains of another model, or of other data: "
                "give another name, or remove the file."
            ) from why

    @property
    def _asked(self) -> dict[str, Any]:
        return self.goal._asdict() | {"of": self.names}

    def _was_reached(self, idata: xr.DataTree) -> bool:
        """Whether an earlier call reached the same goal."""
        about = json.loads(idata.attrs.get(ABOUT, "{}"))
        return about.get("ended") == "reached" and about["asked"] == self._asked

    # ------------------------------------------------------------------------------------ Decisions

    def _is_enough(self, one: Reached) -> bool:
        return one.has_mixed(self.goal) or one.is_pooled(self.goal)

    def _are_enough(self, found: list[Reached]) -> bool:
        return bool(found) and all(self._is_enough(one) for one in found)

    def _seconds_left(self, found: list[Reached], n_drawn: int) -> float:
        """Estimate of what is left until all variables mix."""
        needs = max(one.needs(self.goal) for one in found)
        rate = 0.0 if math.isnan(self.seconds_a_draw) else self.seconds_a_draw
        return (needs - n_drawn) * rate if needs < math.inf else math.inf

    def _ended(self, found, looks: int, n_drawn: int, most: int) -> str:
        """Why the run ends; empty if it goes on."""
        if all(one.has_mixed(self.goal) for one in found):
            return "reached"
        enough = all(self._is_enough(one) for one in found)
        if n_drawn >= most or self.left <= 0:
            return "reached" if enough else "draws" if n_drawn >= most else "time"
        if math.isnan(self.seconds_a_draw):  # from a file
            return ""
        beyond = self._seconds_left(found, n_drawn)
        if enough and (beyond > self.left or self._draws_needed(found) > most):
            return "reached"
        hopeless = [one for one in found if self._is_hopeless(one, n_drawn, most)]
        saves = self.left > SAVED * (self.until - self.begun)
        return "cannot" if looks > 1 and hopeless and saves else ""

    def _draws_needed(self, found: list[Reached]) -> float:
        return max(one.needs(self.goal) for one in found)

    def _is_hopeless(self, one: Reached, n_drawn: int, most: int) -> bool:
        """Whether neither R-hat and ESS nor the pool will be reached in time."""
        if self._is_enough(one):
            return False
        needs = one.needs(self.goal)
        in_time = (needs - n_drawn) * self.seconds_a_draw <= FAR * self.left
        if in_time and needs <= FAR * most:
            return False
        # a pool that still changes may become flat in the time that is left
        if one.pool is None or self.goal.pooled is None:
            return True
        return one.pool.verdict in ("few", "short")

    def _next(self, found, n_drawn: int, most: int) -> int:
        """Draws of the next piece: what is needed by the estimate, from half to all so far."""
        needs = min(1.1 * self._draws_needed(found), float(most))
        n = int(np.clip(needs - n_drawn, max(n_drawn // 2, 4), n_drawn))
        if self.seconds_a_draw > 0:
            n = min(n, max(int(self.left / self.seconds_a_draw), 4))
        return min(n, most - n_drawn)

    # --------------------------------------------------------------------------------------- Pieces

    def _draw(self, idata: xr.DataTree | None, n: int, first: dict) -> _Piece:
        """All draws, with further ones."""
        watch, begun = _Watch(self.path, self.until), monotonic()
        options = self.options | {"checkpoint": watch, "compute_convergence_checks": False}
        before = draws_in(idata)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Interrupted: the result")
                warnings.filterwarnings("ignore", "The run was stopped during tuning")
                if idata is None:
                    new = sample_chains(self.model, **first, **options)
                else:
                    new = resume(idata, self.model, n, **options)
        except KeyboardInterrupt:
            if idata is None:
                raise
            return _Piece(idata, "interrupted")
        except Exception as error:
            if idata is None or not before:
                raise
            _log.error(f"{type(error).__name__}: {error}")
            return _Piece(idata, FAILED)
        chains = first["chains"] if idata is None else len(idata[GROUP].children)
        gained = draws_in(new) - before
        if idata is not None and before and new["posterior"].sizes["chain"] < chains:
            return _Piece(idata, FAILED)  # one of the chains, which was reported
        if gained:
            iterations = gained if before else gained + first["tune"]
            rough = (monotonic() - begun) / iterations
            rate = watch.seconds_an_iteration
            self.seconds_a_draw = rough if math.isnan(rate) else rate
        cut_short = "time" if watch.is_over else "interrupted"
        return _Piece(new, "" if gained == n else cut_short)

    # --------------------------------------------------------------------------------- What is said

    def _report(self, found: list[Reached], n_drawn: int, ended: str) -> None:
        if not self.options["progressbar"]:
            return
        minutes = (monotonic() - self.begun) / 60
        worst = max(found, key=lambda one: one.needs(self.goal))
        text = f"{n_drawn} draws of each chain after {minutes:.1f} min: {worst.words(self.goal)}."
        if not ended and not math.isnan(self.seconds_a_draw):
            left = self._seconds_left(found, n_drawn) / 60
            about = f"{left:.1f} min" if left < math.inf else "an unknown time"
            text += f" By this, {about} more; at most {max(self.left, 0) / 60:.1f} min."
        _log.info(text)

    def _result(self, idata: xr.DataTree, found: list[Reached], ended: str) -> xr.DataTree:
        helps = [] if ended == "reached" else self._what_helps(found, idata, ended)
        about = {
            "asked": self._asked,
            "data": digest_of_data(self.model),
            "reached": {
                one.name: {
                    "r_hat": _number(one.r_hat),
                    "ess": _number(one.ess),
                    "by": "R-hat"
                    if one.has_mixed(self.goal)
                    else "pool"
                    if one.is_pooled(self.goal)
                    else "",
                    "pool": "" if one.pool is None else one.pool.verdict,
                    "pooled": None if one.pool is None else _number(one.pool.spread.size),
                }
                for one in found
            },
            "ended": ended,
            "helps": helps,
        }
        result = idata.copy()
        result.attrs[ABOUT] = json.dumps(about)
        if self.path is not None and ended != "interrupted":
            _Watch(self.path, self.until).write(result)
        if ended != "reached":
            missing = [one for one in found if not self._is_enough(one)]
            unknown = "draws were not judged" if draws_in(idata) else "it was still tuning"
            what = "; ".join(one.words(self.goal) for one in missing) or unknown
            warnings.warn(
                f"sample_until ended before its goal ({ended}): {what}. What would help: "
                f"{'; '.join(helps)}.",
                stacklevel=4,
            )
        return result

    def _what_helps(self, found: list[Reached], idata: xr.DataTree, ended: str) -> list[str]:
        """What would help, most likely first."""
        go_on = "the same call again" if self.path is not None else "pymc_trees.resume"
        if ended == FAILED:
            return ["what the message above says of the chain that failed"]
        if not found:
            return [f"more time ({go_on})"]
        missing = [one for one in found if not self._is_enough(one)]
        verdicts = {one.pool.verdict for one in missing if one.pool is not None}
        chains, helps = idata["posterior"].sizes["chain"], []
        if verdicts & {"few", "short"} and (chains < CHAINS or "few" in verdicts):
            anew = "" if self.path is None else ", and another checkpoint"
            helps.append(f"more chains (chains={max(2 * chains, CHAINS)}{anew})")
        if self.goal.pooled is None and "pool" in verdicts:
            helps.append("the pool of chains, which can be used (pooled=0.03)")
        if "few" not in verdicts:
            helps.append(f"more time (max_time=, {go_on})")
        if verdicts & {"apart", "few"}:
            helps.append("more trees (m=), or a likelihood with more room for noise")
        sizes = [rv for rv in self.model.free_RVs if is_forest(rv)]
        if any(rv.owner.op.layout.n_rows >= LARGE and declared(rv).cuts is None for rv in sizes):
            helps.append("a grid of cuts (n_cuts=100), which makes a sweep faster")
        if any(one.pool is None for one in missing):
            slow = ", ".join(one.name for one in missing if one.pool is None)
            helps.append(
                f"of=[...] without {slow} if functions of trees are what matters, more trees (m=), "
                f"or narrower priors of {slow}"
            )
        return helps


def draws_in(idata: xr.DataTree | None) -> int:
    """Draws of each chain."""
    if idata is None or "posterior" not in idata.children:
        return 0
    return idata["posterior"].sizes["draw"]


def _number(value: float) -> float | None:
    """As JSON has it."""
    return float(value) if math.isfinite(value) else None
