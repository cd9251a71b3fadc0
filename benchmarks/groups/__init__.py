"""Group effects around a forest, four packages on the same data."""
