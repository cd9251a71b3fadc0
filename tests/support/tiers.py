"""What is in the quick tier (`pytest`), and what in the rest (`pytest -m full`).

The quick tier is the cases of `QUICK_FILES` that are not marked `full`: the laws that every sampler
has to obey, and what most mistakes would break. The tiers differ in the number of cases and of
draws, never in a tolerance. A file that is named on the command line runs whatever its tier.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHOLE = {ROOT / "pymc_trees", ROOT / "tests"}
"""Folders of all tests: `testpaths` in pyproject.toml."""
FILES = {
    "core": "by_address core_encode core_fields core_leaves row_sets",
    "distributions": "data_frames dims encoded_value levels_and_missing log_probability prediction",
    "estimators": "bart_estimators",
    "house": "house share_of_tests structure",
    "inference": "exact_evidence pooling resume",
    "laws": "detailed_balance exact_posterior gaussian_terms geweke mistakes prior reversal",
    "mondrian": "mondrian_gaussian mondrian_laws",
    "posterior": "check_draws dependence named_columns shapley trees",
    "predictor": "packed_forests",
    "reliability": "missing_draws",
    "step_methods": "assignment hybrid latent_column latent_normals noise_scale recorded_function "
    "ridge_moves sampling_state",
    "survival": "survival_function",
    "terms": "rows",
    "targets": "laws likelihood_table recognised refused ridges row_reading",
}
QUICK_FILES = {
    ROOT / f"tests/{folder}/test_{name}.py"
    for folder, names in FILES.items()
    for name in names.split()
} | {ROOT / "tests/test_pymc_bart.py"}


def all_are_asked_for(config: pytest.Config) -> bool:
    """Whether pytest was given no files or folders, or those of all tests."""
    return all(Path(ROOT, argument) in WHOLE for argument in config.args)


def is_left_out(path: Path, config: pytest.Config) -> bool:
    """Whether a file need not be read, since no test of it is in the tier that is asked for."""
    is_test = path.suffix == ".py" and path.name != "conftest.py"
    quick_alone = config.option.markexpr == "not full" and all_are_asked_for(config)
    return quick_alone and is_test and path not in QUICK_FILES


def tiers(cases, quick, single=False):
    """Cases for `pytest.mark.parametrize`; those not listed in ``quick`` are left to the rest.

    A tuple holds one value for each of several names, unless ``single``.
    """
    cases, quick = list(cases), list(quick)
    assert all(case in cases for case in quick), "a quick case that is none"
    return [
        pytest.param(
            *((case,) if single or not isinstance(case, tuple) else case),
            marks=() if case in quick else pytest.mark.full,
        )
        for case in cases
    ]


def table(sampler, quick, rest=()):
    """Cases of a law for a sampler, a function: those of ``quick``, and others left to the rest."""
    others = [case for case in dict.fromkeys(rest) if case not in quick]
    return [
        pytest.param(
            sampler,
            case,
            id="-".join(map(str, (sampler.__name__, *case))),
            marks=() if case in quick else pytest.mark.full,
        )
        for case in [*quick, *others]
    ]
