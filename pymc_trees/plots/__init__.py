"""How are results shown? From numbers to figures, with matplotlib.

May import: `posterior`, `distributions`, `core`; matplotlib, ArviZ.
"""
