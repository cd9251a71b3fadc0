"""Errors for models in which a forest cannot be sampled."""


class UnsupportedModelError(NotImplementedError):
    """A model that no sampler of forests supports; the message names alternatives."""


class NotConjugateError(UnsupportedModelError):
    """A forest whose leaf values do not integrate out under its likelihood."""


class ForestUseError(UnsupportedModelError):
    """A forest that is not used through its function at its training inputs."""


class LeafNotProposedError(UnsupportedModelError):
    """A leaf without proposals for its values, under a nonconjugate likelihood."""


class NotRecognisedError(Exception):
    """An expression or a likelihood that is not known to be of some kind; the message says why."""
