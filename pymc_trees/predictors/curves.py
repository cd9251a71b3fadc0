"""`Predictor.survival`: survival curves of subjects, from hazards on a grid or a law of times."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_trees.arguments import check_choice
from pymc_trees.predictors import evaluation, laws
from pymc_trees.predictors.columns import Schema
from pymc_trees.predictors.laws import KINDS, probabilities_of, summary
from pymc_trees.predictors.random_columns import averaged, check_known
from pymc_trees.predictors.rows import as_table, check_some, encode_held


class Curves:
    """What a predictor says of times to an event."""

    _about: dict[str, Any]
    _evaluator: Any
    _response: Any
    law: str | None

    def survival(
        self,
        X,
        times: Sequence[float] | None = None,
        kind: str | None = None,
        *,
        quantiles: Sequence[float] | None = None,
        level: float = 0.9,
        grid: Sequence[float] | None = None,
        n_jobs: int = 1,
    ) -> np.ndarray:
        """Probability of having no event up to each time.

        For models of `survival.discrete_time`, whose response is a Bernoulli on rows of the long
        form, and for laws of times: LogNormal, Weibull, Exponential, Normal, possibly in
        `pymc.Censored`, such as `survival.accelerated_failure_time` has. Results are those of
        `survival.survival_function`.

        Parameters
        ----------
        X : array, frame or list of dicts
            Subjects, without a column for the time.
        times : (T,) increasing sequence, optional
            Default: the grid of the long form.
        kind : {"mean", "sd", "interval", "quantiles"}, optional
            Over the draws. Default: "mean", or "quantiles" where these are given.
        quantiles : sequence of float, optional
            Probabilities.
        level : float, default 0.9
            Probability of an interval, with equal tails.
        grid : (G,) increasing sequence, optional
            Times of the long form, which are the values of its first column. Default: those that
            the predictor holds, where that column is called "time".
        n_jobs : int, default 1
            Threads; -1 for as many as there are processors.

        Returns
        -------
        (n, T) or (n, T, Q) array
            Rows first; an interval or quantiles last.

        Raises
        ------
        ValueError
            For another response, and for times beyond the grid.

        Examples
        --------
        >>> import numpy as np, pymc as pm, pymc_trees as pmt
        >>> from pymc_trees import survival
        >>> rng = np.random.default_rng(1)
        >>> X, T = rng.random((30, 1)), rng.exponential(size=30)
        >>> with survival.accelerated_failure_time(X, T, np.ones(30), m=3) as model:
        ...     prior = pm.sample_prior_predictive(20, random_seed=1)
        >>> predictor = pmt.predictor(prior["prior"].to_dataset(), model)
        >>> predictor.survival([[0.2], [0.8]], times=[0.5, 1.0, 2.0]).shape
        (2, 3)
        """
        kind = check_choice("kind", kind or ("mean" if quantiles is None else "quantiles"), KINDS)
        probabilities = probabilities_of(kind, quantiles, level)
        if self.law == "bernoulli":
            parts = self._from_hazards(X, times, grid, n_jobs)
        else:
            parts = self._from_law(X, times, n_jobs)
        return np.concatenate([summary(part, kind, probabilities) for part in parts])

    def _from_law(self, X, times, n_jobs):
        """(D, n, T) of some rows at a time."""
        law = laws.LAWS.get(self.law or "")
        if law is None or law.survival is None:
            raise ValueError(
                f"survival: the response is {self._law_in_words()}, "  # type: ignore[attr-defined]
                "of which survival curves are not known here. Use survival.survival_function with "
                "the model."
            )
        if times is None:
            raise ValueError("times=None: give the times of the curves, in increasing order.")
        at = _increasing("times", times)
        for part in self._evaluator.blocks(X, self._response["of"], n_jobs, False):
            parameters = self._of_rows(part)  # type: ignore[attr-defined]
            with np.errstate(all="ignore"):
                alive = law.survival(at, *(one[..., None] for one in parameters))
            yield averaged(alive, part.weights)

    def _from_hazards(self, X, times, grid, n_jobs):
        """The same as products over a grid."""
        grid = self._response.get("grid") if grid is None else grid
        if grid is None or len(self._evaluator.tables) != 1 or self._evaluator.data:
            raise ValueError(
                "survival: the response is a Bernoulli that is not known to be an event on the "
                "long form. Give grid=, the values of the column of times, which is the first."
            )
        grid = _increasing("grid", grid)
        at = grid if times is None else _increasing("times", times)
        if at[-1] > grid[-1]:
            raise ValueError(
                f"times up to {at[-1]:g}, but the hazards of the model end at {grid[-1]:g}: give "
                "earlier times."
            )
        [table] = self._evaluator.tables
        names, rules, levels, complete = table.schema
        schema = Schema(names and names[1:], rules[1:], levels[1:], complete)
        rows = encode_held(as_table(X), schema, table.name)
        check_some(len(rows), table.name)
        last = np.searchsorted(grid, at, side="right")
        width = max(1, evaluation.BLOCK // (self._evaluator.n_draws * len(grid)))
        for start in range(0, len(rows), width):
            some = np.repeat(rows[start : start + width], len(grid), axis=0)
            n = len(some) // len(grid)
            long = np.column_stack([np.tile(grid, n), some])
            parts = [*self._evaluator.at_encoded([long], [], self._response["of"], n_jobs, False)]
            for part in parts:
                check_known(part, "survival")
            hazards = np.concatenate([self._of_rows(part)[0] for part in parts], axis=1)  # type: ignore[attr-defined]
            alive = np.cumprod(1.0 - hazards.reshape(-1, n, len(grid)), axis=2)
            ahead = np.concatenate([np.ones((len(alive), n, 1)), alive], axis=2)
            yield ahead[:, :, last]


def _increasing(name: str, times) -> np.ndarray:
    found = np.atleast_1d(np.asarray(times, dtype=float))
    ok = found.ndim == 1 and found.size and np.isfinite(found).all()
    if not ok or (np.diff(found) <= 0).any():
        raise ValueError(f"{name}: give at least one, in increasing order.")
    return found
