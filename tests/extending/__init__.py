"""Things of each known kind, written outside the package: they pass its laws."""
