"""A plugin of pytest. In conftest.py: pytest_plugins = ['godelayed.testing.plugin']."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from .kit import InMemory


@pytest.fixture
def delayed() -> Generator[InMemory]:
    """Queues in memory, which all applications use while the test runs."""
    with InMemory() as memory:
        yield memory
