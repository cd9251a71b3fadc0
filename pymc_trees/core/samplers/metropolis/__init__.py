"""Local moves: `one_move`, `backfitting` (all trees), `joint_sweep` (any likelihood)."""
