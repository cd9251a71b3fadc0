"""Laws of random columns as facts of a predictor."""

from typing import Any

from pymc_trees.distributions.data.random_columns import support_of
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.posterior.reading.column_laws import law_of, parts_of
from pymc_trees.posterior.reading.functions import bases_of
from pymc_trees.posterior.reading.random_inputs import RandomInputs
from pymc_trees.posterior.reading.whole import Part
from pymc_trees.predictors.integration import LAWS


def law_facts(maker, name: str, inputs: RandomInputs) -> dict[str, Any]:
    """Where a column is, and its law, or why that is not held.

    ``maker`` is that of the predictor, ``inputs`` those of a forest with the column.
    """
    model = maker.model
    columns = {other: one.columns[other] for other, one in maker.columns.items()}
    place, source = next(
        (k, one)
        for k, one in enumerate(maker.sources)
        if any(v is inputs.constant for v, _ in one.inner)
    )
    law = law_of(model, columns, name)
    assert law is not None
    facts = {"table": place, "column": source.names.index(name), "name": name}
    facts |= {"law": None, "of": [], "after": sorted(law.after), "why": ""}
    support = support_of(law.latent)
    if support is not None:
        facts["values"] = len(support)
    family = law.family
    if family is None:
        kind = type(law.latent.owner.op).__name__.removesuffix("RV")
        return facts | {"why": f"its prior is a {kind}, not one of {list(LAWS)}"}
    everything = [*model.basic_RVs, *model.deterministics]
    trees = next(one for one in evaluations(everything) if one.tree is inputs.tree)
    like = Part(trees.outputs, name, [trees], bases_of([trees], model))
    numbers, why = maker.law_numbers(name, parts_of(model, law, like), law.parameters)
    return facts | {"law": None if why else family, "of": numbers, "why": why}
