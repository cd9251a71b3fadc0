"""The methods of `Predictor` that write it down for other runtimes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pymc_trees._version import __version__
from pymc_trees.arguments import check_choice, check_number
from pymc_trees.predictors.elsewhere import asked, onnx_model, sql
from pymc_trees.predictors.elsewhere.asked import check_hard, leaves_of, levels_in, splits_of
from pymc_trees.predictors.elsewhere.tensors import NotCarriedError
from pymc_trees.predictors.evaluation import Evaluator
from pymc_trees.predictors.laws import KINDS_OF_DRAWS, probabilities_of
from pymc_trees.predictors.packed import SOFT, PackedForest

# ----------------------- A predictor as JSON: everything it holds, in lists that any language reads
#
# `docs/data_model/predictor_json.md` has the schema.


FORMAT, VERSION = "pymc_trees predictor", 1


def json_of(evaluator: Evaluator, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]):
    """The text."""
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": __version__,
        "chains": about["chains"],
        "draws": about["draws"],
        "tables": [_table(one) for one in about["tables"]],
        "data": about["data"],
        "forests": [_forest(one) for one in evaluator.forests],
        "program": [_step(one, arrays) for one in about["program"]],
        "functions": about["functions"],
        "parameters": {name: plain(arrays[f"draws/{name}"]) for name in about["parameters"]},
        "response": about["response"],
        "classes": about["classes"],
        "coords": about["coords"],
    }
    if "random" in about:
        facts["random"] = about["random"]
    return json.dumps(facts, separators=(",", ":"), allow_nan=False)


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    names = table["names"] or [None] * len(table["rules"])
    columns = [
        {"name": name, "levels": levels}
        for name, levels in zip(names, table["levels"], strict=True)
    ]
    return {"name": table["name"], "columns": columns}


def _step(step: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """An instruction, with its numbers beside it."""
    step = {"of": [], **step}
    if step["op"] == "constant":
        return {"op": "constant", "of": [], "value": plain(arrays[f"constant/{step['number']}"][0])}
    if step["op"] == "draws":
        return {**step, "value": plain(arrays[f"draws/{step['name']}"])}
    return step


def plain(array: np.ndarray) -> Any:
    """Nested lists of numbers; text for what JSON has no number for."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        words = {np.inf: "Infinity", -np.inf: "-Infinity"}
        cells = [v if np.isfinite(v) else words.get(v, "NaN") for v in array.reshape(-1).tolist()]
        return np.array(cells, dtype=object).reshape(array.shape).tolist()
    return array.tolist()


def _forest(forest: PackedForest) -> dict[str, Any]:
    check_hard(forest, "to_json", soft=True)
    links, arrays = forest.links, forest.arrays
    total, is_split = len(arrays["rules"]), arrays["rules"] > 0
    column, right = np.full(total, -1), np.full(total, -1)
    column[links.split], right[links.split] = links.column, links.right
    nodes: dict[str, list] = {
        "column": column.tolist(),
        "right": right.tolist(),
        "cut": _at(links.split, links.cut.tolist(), total),
    }
    facts = {"name": forest.about.get("name"), "kind": forest.kind, "draws": forest.draws}
    facts |= {"trees": forest.trees, "outputs": forest.n_outputs}
    facts |= {"roots": links.roots[:-1].tolist(), "nodes": nodes}
    if forest.kind == SOFT:
        nodes["value"] = _at(np.flatnonzero(~is_split), forest.values.tolist(), total)
        offsets = arrays["offsets"]
        facts["map"] = [
            {
                name: arrays[name][offsets[j] : offsets[j + 1]].tolist()
                for name in ("knots", "heights")
            }
            | {"hard": bool(arrays["hard"][j])}
            for j in range(forest.p)
        ]
        return facts | {"bandwidths": arrays["bandwidths"].tolist()}
    splits, leaves = splits_of(forest), leaves_of(forest)
    nodes["missing_left"] = _at(links.split, splits.missing_left.tolist(), total)
    nodes["value"] = _at(np.flatnonzero(~is_split), leaves.values.tolist(), total)
    nodes["set"] = [None] * total
    known = arrays["levels"].tolist() if forest.mixed else [0] * forest.p
    for at in np.flatnonzero(splits.is_set):
        node = int(links.split[at])
        nodes["set"][node] = levels_in(splits.cut[at], known[splits.column[at]])
        nodes["cut"][node] = None
    facts["known_levels"] = known
    if len(leaves.columns):
        scale = dict(zip(("mean", "sd", "low", "high"), leaves.scale.T.tolist(), strict=True))
        facts["slopes"] = {"columns": leaves.columns.tolist(), **scale, "clipped": leaves.clipped}
    return facts


def _at(nodes: np.ndarray, values: list, total: int) -> list:
    """Values at their nodes, None elsewhere."""
    found = [None] * total
    for node, value in zip(nodes.tolist(), values, strict=True):
        found[node] = value
    return found


# -------------------------------------------------------------------------------------------------


MOST_BYTES = 1_000_000


class Elsewhere:
    """What a predictor is outside of Python."""

    _about: dict[str, Any]
    _arrays: dict[str, Any]
    _evaluator: Any
    functions: list[str]
    law: str | None
    chains: int

    def to_onnx(
        self,
        kind: str | Sequence[str] = ("mean", "sd"),
        *,
        quantiles: Sequence[float] | None = None,
        of: str | None = None,
        draws: int | None = None,
    ):
        """Make a model of ONNX, which runs in servers, phones and browsers.

        Trees are `TreeEnsemble` operators in float64 (ai.onnx.ml 5), and what stands between trees
        and response are operators too: results are those of `predict` to rounding.

        Parameters
        ----------
        kind : {"mean", "sd", "quantiles"} or sequence of these, default ("mean", "sd")
            Outputs of the model, by these names. The mean alone of a function that is linear in the
            trees averages them beforehand, and runs much faster.
        quantiles : sequence of float, optional
            Probabilities, for example ``(0.05, 0.95)``; they add the output "quantiles".
        of : str, optional
            A function by its name, or "mean", the expected response of each draw. Default: "mean",
            or where the law of the response is not known the function. For a Categorical response
            "mean" is the probabilities of its classes, as from `predict_proba`.
        draws : int, optional
            How many, over all chains and evenly spaced. Default: all.

        Returns
        -------
        onnx.ModelProto
            ``.SerializeToString()`` is the content of a file, which `onnx.save` writes. Outputs
            have rows first, (n, ...), quantiles last.

        Raises
        ------
        ImportError
            Without the package onnx.
        ValueError
            For soft trees; for expressions without an operator; for `of` "y"; for more than 2 GB.

        Notes
        -----
        A table of numbers is one input (n, p) of float64, named after the table. A table that has
        levels is an input (n, 1) for each column, named after the column: text where levels are
        text, otherwise float64; with several tables, or where a column is called "mean", its name
        is "X.mean". Missing cells are NaN, of text an unknown level. Data beside X are inputs of
        their names. Random columns of the model are taken as known. ONNX Runtime has the operators
        from version 1.20 on.

        Examples
        --------
        >>> import numpy as np, pymc as pm, pymc_trees as pmt
        >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
        >>> with pm.Model() as model:
        ...     mu = pmt.BART("mu", pmt.Data("X", X), leaf=pmt.NormalLeaf(0, 1), m=3)
        ...     y = pm.Normal("y", mu, 1.0, observed=X[:, 0], shape=mu.shape)
        ...     prior = pm.sample_prior_predictive(20, random_seed=1)
        >>> predictor = pmt.predictor(prior["prior"].to_dataset(), model)
        >>> made = predictor.to_onnx(quantiles=(0.05, 0.95))
        >>> [one.name for one in made.graph.output]
        ['mean', 'sd', 'quantiles']
        """
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                'Models of ONNX need the package onnx: pip install "pymc_trees[onnx]".'
            ) from error
        kinds = [kind] if isinstance(kind, str) else list(kind)
        if quantiles is not None and "quantiles" not in kinds:
            kinds.append("quantiles")
        for one in kinds or [str(kind)]:
            check_choice("kind", one, KINDS_OF_DRAWS)
        kinds = list(dict.fromkeys(kinds))
        probabilities = probabilities_of("quantiles", quantiles, 0.0)
        fewer = self._fewer(draws)
        try:
            function = fewer._function_elsewhere(of, "to_onnx")
            return onnx_model.model_of(
                onnx, fewer._evaluator, fewer._arrays, function, kinds, probabilities
            )
        except NotCarriedError as error:
            raise ValueError(
                f"to_onnx: the function has {error}, for which there is no operator. Give of=, a "
                f"function among {self.functions} without it, or use save() and load()."
            ) from error

    def to_json(self, *, draws: int | None = None) -> str:
        """Write everything that predictions take as JSON, for other languages.

        Parameters
        ----------
        draws : int, optional
            How many, over all chains and evenly spaced. Default: all.

        Returns
        -------
        str
            An object with ``format`` and ``version``, in the schema of the page on the JSON of a
            predictor: tables with their levels, trees in lists, parameters, the instructions
            between trees and functions, and the response. There is no row of the training data.

        Examples
        --------
        >>> import json, numpy as np, pymc as pm, pymc_trees as pmt
        >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
        >>> with pm.Model() as model:
        ...     mu = pmt.BART("mu", pmt.Data("X", X), leaf=pmt.NormalLeaf(0, 1), m=3)
        ...     prior = pm.sample_prior_predictive(20, random_seed=1)
        >>> predictor = pmt.predictor(prior["prior"].to_dataset(), model)
        >>> read = json.loads(predictor.to_json(draws=2))
        >>> read["version"], len(read["forests"][0]["roots"])  # two draws of three trees
        (1, 6)
        """
        fewer = self._fewer(draws)
        return json_of(fewer._evaluator, fewer._about, fewer._arrays)

    def to_sql(
        self,
        table: str | Sequence[str],
        *,
        dialect: str = "duckdb",
        name: str = "prediction",
        of: str | None = None,
        draws: int | None = None,
        columns: Sequence[str] | None = None,
        max_bytes: int = MOST_BYTES,
    ) -> str:
        """Write the posterior mean as a query, which predicts in the database.

        Trees are CASE expressions in the columns of the table, to the last bit of their cuts.

        Parameters
        ----------
        table : str or sequence of str
            The table; with its schema a sequence, ``("main", "rentals")``.
        dialect : {"duckdb", "sqlite", "postgres"}, default "duckdb"
            Of the database. The first two are tested in these databases, the third is written by
            its documentation alone.
        name : str, default "prediction"
            The new column. A function of K numbers for each row has ``prediction_0`` and so on.
        of : str, optional
            As for `to_onnx`: a function, or "mean", the expected response.
        draws : int, optional
            How many, over all chains and evenly spaced. Default: all.
        columns : sequence of str, optional
            Names of the columns in the table, in the order of X. Default: those of the training
            frame.
        max_bytes : int, default 1_000_000
            Of the text, at the most; SQLite by default reads no longer ones.

        Returns
        -------
        str
            A SELECT of all columns of the table and the new one.

        Raises
        ------
        ValueError
            For soft trees; for operations that databases lack, such as those of probit links; for
            more than `max_bytes`; for columns without names.

        Notes
        -----
        NULL is a missing cell. So is NaN where a database has it, and a text that is no level of
        its column. Numbers are taken as float64, whatever the type of their column; of BOOLEAN
        columns DuckDB and SQLite do so, Postgres needs integers. Data beside X are columns of their
        names: numbers, and of groups the labels where all of these are text, otherwise the codes
        0, 1, .. that `predict` takes. Random columns of the model are taken as known. A function
        that is not linear in the trees is written for each draw. SQLite needs its mathematical
        functions for exponentials, which most builds have.

        Examples
        --------
        >>> import pandas as pd, pymc as pm, pymc_trees as pmt
        >>> X = pd.DataFrame({"size": [1.0, 2.0, 3.0]})
        >>> with pm.Model() as model:
        ...     mu = pmt.BART("mu", pmt.Data("X", X), leaf=pmt.NormalLeaf(0, 1), m=2)
        ...     prior = pm.sample_prior_predictive(4, random_seed=1)
        >>> query = pmt.predictor(prior["prior"].to_dataset(), model).to_sql("houses")
        >>> query.startswith("SELECT t.*, "), query.endswith(' AS "prediction" FROM "houses" AS t')
        (True, True)
        """
        words = sql.DIALECTS[check_choice("dialect", dialect, sql.DIALECTS)]
        most = check_number("max_bytes", max_bytes, 1)
        fewer = self._fewer(draws)
        names = sql.columns_of(fewer._evaluator, columns, name)
        try:
            function = fewer._function_elsewhere(of, "to_sql")
            query = sql.Query(fewer._evaluator, fewer._arrays, function, words, names, most)
            return sql.text_of(query, [table] if isinstance(table, str) else table, name)
        except NotCarriedError as error:
            raise ValueError(
                f"to_sql: the function has {error}, which databases lack. Give of=, a function "
                f"among {self.functions} without it, or use to_onnx() or save()."
            ) from error
        except sql.TooLongError as error:
            fit = max(1, error.args[0] // self.chains) * self.chains
            raise ValueError(
                f"to_sql: the query has more than max_bytes={max_bytes}. Give draws={fit}, or a "
                "larger max_bytes where the database reads it."
            ) from error

    def _fewer(self, draws):
        return self if draws is None else self.thinned(draws)  # type: ignore[attr-defined]

    def _function_elsewhere(self, of: str | None, what: str) -> asked.Asked:
        of, _ = self._asked(of)  # type: ignore[attr-defined]
        if of == "y":
            raise ValueError(
                f"of='y': {what} has no new observations. Give of='mean', or a function among "
                f"{self.functions}."
            )
        if of == "mean" and self.law is not None:
            return asked.mean_of_response(self._evaluator, self._about)
        return asked.function_of_rows(self._evaluator, self._about, of)
