"""Pages show no number of a run but those that a test compares with the stored results.

A page quotes stored results in a table below a marker (`test_results`) or in words that
`test_quoted_numbers` computes. Any other time, size, share, ratio or decimal is listed in
`support.stored.unmeasured`, with what it is instead.
"""

import re

import pytest
from support.stored.claims import plain, said
from support.stored.results import PAGES, QUOTED, ROOT, cells, name_of
from support.stored.unmeasured import NUMBERS, TABLES

pytestmark = pytest.mark.usefixtures("benchmarks")

WRITTEN = [*PAGES, ROOT / "CHANGELOG.md"]
COUNT = r"(?:\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)"
MEASURE = re.compile(
    rf"\b{COUNT} ?(?:ns|us|µs|ms|s|seconds?|minutes?|hours?|[kMGT]B)\b"
    rf"|\b{COUNT} times (?:as|the|that|more|less|faster|slower|longer|sooner)\b"
    r"|\btwice (?:as|the|that)\b"
    r"|\d%|\d \d+% |\d\.\d|[Mm]easured once"
)
"""What a measurement looks like in a sentence."""
NAMED = re.compile(
    r"(?:[Ff]igures?|[Tt]ables?|sections?|[Aa]lg\.|algorithms?|eqs?\.)"
    r" [\d., –-]*\d(?: and [\d.]*\d)?"
    r"|\(\d+\.\d+\.\d+\)|arXiv \d+\.\d+"
    r"|(?:Python|PyMC|polars|h5netcdf|pymc-bart|newest on|CC BY|License) \d+(?:\.\d+)+"
)
"""Numbers that are names: of figures and sections, of versions and preprints."""
NUMBER = re.compile(r"[-+~]?\d[\d.,]*(?:e[-+]?\d+)?( ?(±|to|\().*)?")
"""A cell that holds a number."""


def without_blocks(text: str) -> str:
    """Prose and tables, without blocks of code and of formulas."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2 *$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?: {4}[^ ].*\n)+", "", text, flags=re.MULTILINE)
    return re.sub(r"\$\$.*?\$\$|<!--.*?-->", "", text, flags=re.DOTALL)


def without_code(text: str) -> str:
    """A line of prose without code, formulas and addresses."""
    return re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|<https?://[^>]*>", "", text)


def tables(text: str) -> list[str]:
    return re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)


def of_numbers(table: str) -> bool:
    """Whether some row has two cells or more that are numbers."""
    rows = map(cells, table.splitlines())
    return any(sum(bool(NUMBER.fullmatch(cell)) for cell in row) > 1 for row in rows)


def measures(text: str, known: list[str]) -> list[str]:
    """Words around what looks like a measurement, but for those that are known."""
    text = plain(text)
    for words in known:
        text = text.replace(plain(words), " ... ")
    text = NAMED.sub("", plain(without_code(text)))
    return [text[max(m.start() - 40, 0) : m.end() + 20] for m in MEASURE.finditer(text)]


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_a_page_has_no_number_of_a_run_by_hand(page):
    name = name_of(page)
    text = without_blocks(QUOTED.sub("", page.read_text()))
    allowed = TABLES.get(name, {})
    found = [table for table in tables(text) if of_numbers(table)]
    headers = [table.splitlines()[0] for table in found]
    assert set(headers) == set(allowed), "stored results, or a reason in support.stored.unmeasured"
    for header in allowed:
        text = text.replace(found[headers.index(header)], "")
    known = [*said(name), *NUMBERS.get(name, ()), *NUMBERS["everywhere"]]
    assert measures(text, known) == []


def test_listed_numbers_are_on_their_pages():
    pages = {name_of(page): plain(page.read_text()) for page in WRITTEN}
    for name, listed in NUMBERS.items():
        text = "".join(pages.values()) if name == "everywhere" else pages[name]
        assert [words for words in listed if plain(words) not in text] == []
    assert TABLES.keys() <= pages.keys()


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        ("a step takes 3.2 ms", True),
        ("a step takes some 20 s", True),
        ("takes 279 MB in memory", True),
        ("19 times the effective samples", True),
        ("is twice as fast", True),
        ("intervals cover 88% of the rows", True),
        ("Measured once: a command", True),
        ("with R-hat of 1.01", True),
        ("two chains of 300 draws on 1,000 rows", False),
        ("`beta = 1.5`, see [this](there_2.0.md)", False),
    ],
)
def test_measurements_are_seen(words, seen):
    assert bool(measures(words, [])) == seen


def test_tables_of_numbers_are_seen():
    assert of_numbers("| a | b | c |\n|---|---|---|\n| x | 1.2 | 3 ± 0.1 |")
    assert not of_numbers("| a | b |\n|---|---|\n| 1 | any |")
