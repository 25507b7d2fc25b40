"""The package's own exceptions."""


class FusionError(RuntimeError):
    """Base of the package's errors; raised as it is when the pass fails on a graph."""


class StalePlanError(FusionError):
    """The graph has changed since the plan was made; the plan was not applied."""


class RegistrationError(FusionError):
    """PyTensor's registered fusion pass is not its own, so it was left alone."""
