"""Tables 1, 2 and 6 of Cochrane, Wills and Johnson (2024), and speed, beside its numbers."""

from benchmarks.papers.dcc_tree.tables import report as report
