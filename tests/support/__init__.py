"""What tests share. Its assertions say what they compared, as those of tests do."""

import pkgutil

import pytest

# Pytest rewrites by itself only modules of tests; it must be told before they are imported.
pytest.register_assert_rewrite(
    *(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
)
