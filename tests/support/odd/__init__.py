"""Odd inputs, a table for each public name: what is given, and what must come of it."""
