"""The package's own exceptions."""


class FusionError(RuntimeError):
    """Base of the errors that planning and applying fusion raise."""


class StalePlanError(FusionError):
    """The graph has changed since the plan was made; the plan was not applied."""
