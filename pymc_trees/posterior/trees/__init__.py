"""What do the trees themselves look like? One by one, and which are probable.

`nodes` (one tree as linked nodes with words for each), `leaves` (words for their values), `text`
(`tree_text`: for reading, or as a graph for Graphviz), `topologies` (`summarise_trees`: the
posterior of the trees of a single tree).

May import: as `posterior`.
"""
