"""Times a PyMC run from its callback: compilation, warm-up and sampling apart."""

from time import perf_counter


class Clock:
    """Callback of ``pm.sample`` with chains run one after the other.

    Everything up to the first draw of a chain counts as compilation; the share of that
    one draw is added back to the warm-up.
    """

    def __init__(self):
        self.start = perf_counter()
        self.begun, self.tuned, self.ended, self.warm = {}, {}, {}, {}

    def __call__(self, trace, draw):
        now = perf_counter()
        chain = draw.chain
        self.begun.setdefault(chain, now)
        if draw.tuning:
            self.tuned[chain] = now
            self.warm[chain] = self.warm.get(chain, 0) + 1
        self.ended[chain] = now

    @property
    def compile(self):
        return self.begun[min(self.begun)] - self.start

    @property
    def warmup(self):
        seconds = 0.0
        for chain, end in self.tuned.items():
            n = self.warm[chain]
            seconds += (end - self.begun[chain]) * n / max(n - 1, 1)
        return seconds

    @property
    def sampling(self):
        return sum(self.ended[c] - self.tuned.get(c, self.begun[c]) for c in self.ended)
