"""The text of a formula: forest terms are found by their parentheses, the rest is formulae's."""

import pytest

from pymc_trees.formula.parse import parse

COLUMNS = ["y", "x1", "x2", "site", "z", "g", "my column"]


def read(formula, **namespace):
    return parse(formula, COLUMNS, namespace)


def names(parsed):
    return [term.name for term in parsed.description.terms]


def test_forests_are_taken_out_and_the_rest_is_kept():
    found = read("y ~ bart(x1 + x2 + site) + z + (1 + z | g)")
    [forest] = found.forests
    assert (forest.kind, forest.columns, forest.settings) == ("bart", ["x1", "x2", "site"], {})
    assert names(found) == ["Intercept", "z", "1|g", "z|g"]


def test_arguments_are_read_as_python_reads_them():
    found = read("y ~ bart(x1 + x2, m=5 * (1 + 1), split_prior={'x1': w}, name='f')", w=3.0)
    [forest] = found.forests
    assert forest.name == "f"
    assert forest.settings == {"m": 10, "split_prior": {"x1": 3.0}}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("bart(.)", ["x1", "x2", "site", "z", "g", "my column"]),
        ("bart(. - g - z)", ["x1", "x2", "site", "my column"]),
        ("tree((x1 + x2) - x2)", ["x1"]),
        ("softbart(x1 + x1)", ["x1"]),
        ("bart(`my column` + x2)", ["my column", "x2"]),
    ],
)
def test_columns(text, columns):
    [forest] = read(f"y ~ {text}").forests
    assert forest.columns == columns


def test_a_product_is_a_forest_of_coefficients():
    found = read("y ~ z * bart(x1)")
    assert [(one.name, one.factor_name) for one in found.forests] == [
        ("bart", ""),
        ("z:bart", "z"),
    ]
    assert names(found) == ["Intercept", "z"]


def test_several_forests_have_names_of_their_own():
    found = read("y ~ bart(x1) + bart(x2) + tree(z) + bart(z, name='bart_2')")
    assert [one.name for one in found.forests] == ["bart", "bart_3", "tree", "bart_2"]


def test_an_intercept_may_be_left_out():
    assert names(read("y ~ 0 + bart(x1)")) == []


@pytest.mark.parametrize(
    ("formula", "error", "words"),
    [
        ("bart(x1)", ValueError, "give a text such as"),
        ("y ~ bart(x1", ValueError, "close the parenthesis"),
        ("y ~ bart(x1 * x2)", ValueError, "joined by \\+"),
        ("y ~ bart(x1, 20)", ValueError, "then keyword arguments"),
        ("y ~ bart(x1, Y=z)", ValueError, "is set by the formula"),
        ("y ~ bart(x9)", ValueError, "are not columns of data"),
        ("y ~ bart(x1):tree(x2)", NotImplementedError, "a product of two forests"),
        ("y ~ (bart(x1) | g)", NotImplementedError, "a forest inside"),
        ("y ~ exp(bart(x1))", NotImplementedError, "a forest inside"),
        ("y ~ hsgp(x1, m=10, c=2)", NotImplementedError, "is not supported"),
    ],
)
def test_what_is_refused(formula, error, words):
    with pytest.raises(error, match=words):
        read(formula)
