"""The package's own exceptions."""


class FusionError(RuntimeError):
    """Base of the package's errors; raised directly if fusion fails or a plan does not apply."""


class StalePlanError(FusionError):
    """The graph has changed since the plan was made; the plan was not applied."""


class RegistrationError(FusionError):
    """The registered fusion pass is missing or is not PyTensor's own, so it was left alone."""


class FreezeError(FusionError):
    """The graph cannot be frozen; it was left unchanged."""


class DigestError(FusionError):
    """Part of the frozen graph is identified by an object of this process, so it has no digest."""


class CacheError(FusionError):
    """A cached graph differs from a fresh result of rewriting; only verification raises this."""


class NativeLinkError(NotImplementedError):
    """A graph cannot become machine code; the message lists the reasons."""
