"""What the harness and the runners say to each other: two ``.npz`` files.

A runner is a module run as a process of its own, so that its memory and its threads are
its own. It reads a :class:`Problem` and writes a :class:`Result`.
"""

import os
import resource
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

ALPHA, BETA, K = 0.95, 2.0, 2.0


@dataclass(frozen=True)
class Problem:
    """One fit: ``n_warmup + n_draws`` iterations per chain, every ``thin``-th draw kept."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray  # no rows: sample only, predict nothing
    m: int
    n_warmup: int
    n_draws: int
    thin: int
    chains: int
    seed: int
    variant: str  # a step method or setting of the package; empty for its default

    @property
    def kept(self):
        return self.n_draws // self.thin

    def seeds(self):
        return [self.seed + chain for chain in range(self.chains)]


@dataclass(frozen=True)
class Result:
    """Draws and costs, the seconds and the memory summed or maximised over chains."""

    f: np.ndarray  # (chains, kept, test rows)
    sigma: np.ndarray  # (chains, kept)
    seconds_compile: float
    seconds_warmup: float
    seconds_sampling: float
    seconds_predict: float
    sweeps_per_step: float  # share of the trees that one iteration updates
    bytes_before: int  # resident after the imports
    bytes_peak: int  # highest while sampling
    version: str

    @property
    def seconds(self):
        """Warm-up counted, compilation and prediction not."""
        return self.seconds_warmup + self.seconds_sampling


def save(path, record):
    np.savez(path, **asdict(record))


def load(path, kind):
    with np.load(path) as stored:
        values = {field.name: stored[field.name] for field in fields(kind)}
    return kind(**{k: v.item() if v.ndim == 0 else v for k, v in values.items()})


def memory_now():
    """Bytes resident in this process."""
    import psutil

    return psutil.Process().memory_info().rss


def memory_peak():
    """Highest resident size of this process, plus what its children hold for themselves."""
    import psutil

    own = None
    status = Path("/proc/self/status")
    if status.exists():  # the peak of rusage is inherited from the parent process on Linux
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                own = int(line.split()[1]) * 1024
    if own is None:
        unit = 1 if sys.platform == "darwin" else 1024
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    children = psutil.Process().children(recursive=True)
    return own + sum(child.memory_full_info().uss for child in children)


def serve(run):
    """Entry point of a runner: ``python -m benchmarks.peers.run_x problem.npz result.npz``."""
    problem_path, result_path = sys.argv[1:3]
    save(result_path, run(load(problem_path, Problem)))
    import psutil

    for child in psutil.Process().children(recursive=True):
        child.kill()  # the helper processes of some packages outlive an ordinary exit
    sys.stdout.flush()
    os._exit(0)
