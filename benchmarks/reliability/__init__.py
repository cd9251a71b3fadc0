"""Long runs: whether memory grows, and whether anything is lost."""
