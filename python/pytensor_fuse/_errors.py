"""The package's own exceptions."""


class FusionError(RuntimeError):
    """Base of the package's errors; raised as it is when the pass fails on a graph."""


class StalePlanError(FusionError):
    """The graph has changed since the plan was made; the plan was not applied."""


class RegistrationError(FusionError):
    """PyTensor's registered fusion pass is not its own, so it was left alone."""


class FreezeError(FusionError):
    """The graph cannot be frozen; it was left as it is."""


class DigestError(FusionError):
    """Part of the frozen graph is identified by an object of this process, and has no digest."""


class CacheError(FusionError):
    """A graph that was kept is not what rewriting makes of it now; only verifying raises this."""


class NativeLinkError(NotImplementedError):
    """A graph cannot be linked by the linker ``native``; the message lists what has no rule."""
