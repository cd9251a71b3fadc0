"""What pages say of runs, beside the stored results.

- `results`: the stored results, and what benchmarks print of them.
- `claims`: sentences of pages with numbers or comparisons, computed from the results.
- `unmeasured`: numbers of pages that no run gave.
"""
