"""What is raised for a model that a forest cannot be sampled in."""


class UnsupportedModelError(NotImplementedError):
    """A model in which no sampler can treat a forest; the text says what to use instead."""


class NotConjugateError(UnsupportedModelError):
    """A forest whose leaf values do not integrate out under its likelihood."""


class ForestUseError(UnsupportedModelError):
    """A forest that is not used through its function at its training inputs."""


class LeafNotProposedError(UnsupportedModelError):
    """A leaf whose values nothing proposes under a likelihood that it is not conjugate to."""
