"""How do data enter? `variables` (`Data`, `set_data`), `encoding` (frames to numbers)."""
