"""Sentences of pages say what the stored results say."""

import pytest
from support.stored.claims import COMPARISONS, SENTENCES, plain, said
from support.stored.results import ROOT

pytestmark = pytest.mark.usefixtures("benchmarks")


@pytest.mark.parametrize("page", SENTENCES)
def test_numbers_in_sentences_are_those_of_the_results(page):
    text = plain((ROOT / page).read_text())
    assert [words for words in said(page) if words not in text] == []


@pytest.mark.parametrize(
    ("page", "words"), [(page, words) for page, found in COMPARISONS.items() for words in found]
)
def test_comparisons_hold_in_the_results(page, words):
    assert plain(words) in plain((ROOT / page).read_text())
    assert COMPARISONS[page][words]()


def test_a_changed_number_is_seen(monkeypatch):
    page = "docs/sharded.md"
    text = plain((ROOT / page).read_text())
    monkeypatch.setattr("support.stored.claims.SHARDED_TREES", 25)
    assert [words for words in said(page) if words not in text]
