"""Code that tests share. Its assertions show the compared values, as those of tests do."""

import pkgutil

import pytest

# Pytest rewrites only test modules by itself; others must be registered before they are imported.
pytest.register_assert_rewrite(
    *(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
)
