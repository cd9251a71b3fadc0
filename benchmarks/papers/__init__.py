"""Published tables, made again with this package and printed beside the printed numbers."""
