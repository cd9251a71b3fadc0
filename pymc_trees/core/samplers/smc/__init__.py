"""One tree with its evidence.

`expansion`, `ancestors`, `top_down` (the run), `draws` (encoded), `ordered` (draws whose leaf
values are in order).
"""
