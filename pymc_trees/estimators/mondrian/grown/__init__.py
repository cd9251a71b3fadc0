"""What is a fitted forest made of, and how does it take in rows?

Reading order: `rows` (what has been seen, a sample of it, and its scale), `threads`, `trees` (a
fitted forest: its trees, and how all of them take in rows), `memory` (what there is room for where
memory is bounded), `bounded` (a fitted forest that stays within it).

May import: `core.mondrian`.
"""
