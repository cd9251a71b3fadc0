"""How time and memory grow with the rows."""
