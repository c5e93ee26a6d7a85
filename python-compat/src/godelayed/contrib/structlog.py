"""Binds queue, function, id and attempt of the running task to what it logs with structlog."""

from __future__ import annotations

from contextlib import AbstractContextManager

import structlog

from ..context import Context
from ..middleware import around_task


def instrument() -> None:
    """Binds from now on; structlog.contextvars.merge_contextvars must be among the processors."""

    @around_task
    def bind(task: Context) -> AbstractContextManager[None]:
        return structlog.contextvars.bound_contextvars(
            queue=task.queue, function=task.path, id=task.id, attempt=task.attempt
        )
