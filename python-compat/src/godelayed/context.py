"""What a running task can find out and report about itself."""

from __future__ import annotations

import contextvars
import datetime
from collections.abc import Callable, Mapping
from typing import Any

from .times import from_milliseconds

_current: contextvars.ContextVar[Context | None] = contextvars.ContextVar('godelayed_task', default=None)


class Context:
    """The running task. current() returns it."""

    __slots__ = ('_interrupt', '_meta', '_report', 'path', 'queue')

    def __init__(
        self,
        queue: str,
        path: str,
        meta: Mapping[str, Any],
        report: Callable[[int, int, str], None],
        interrupt: Callable[[], str | None],
    ) -> None:
        self.queue = queue
        self.path = path
        self._meta = meta
        self._report = report
        self._interrupt = interrupt

    @property
    def id(self) -> str | None:
        """The task's id; None for plain messages, which carry none."""
        return self._meta.get('id')

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1. Always 1 for plain messages, which do not count attempts."""
        return int(self._meta.get('rt', 0)) + 1

    @property
    def deaths(self) -> int:
        """How often a worker died while it ran the task."""
        return int(self._meta.get('d', 0))

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the producer sent with the task, such as a trace context."""
        return dict(self._meta.get('h') or {})

    @property
    def enqueued_at(self) -> datetime.datetime | None:
        """When the task was enqueued, by its producer's clock; None if unknown."""
        ms = self._meta.get('at')
        return from_milliseconds(ms) if ms else None

    @property
    def interrupted(self) -> str | None:
        """Why the task should end: 'timeout', 'canceled', 'lost' or 'stopping'; None if it should not.

        In worker processes a TaskInterrupted is raised as well; in threads of the worker's own process this is the only
        sign.
        """
        return self._interrupt()

    def progress(self, done: int, total: int = 0, note: str = '') -> None:
        """Reports how far the task is, in units of its choice, and a note of up to 4 KiB.

        A task may call it as often as is convenient: at most ten reports a second reach Redis. Reports of tasks without
        an id are dropped.
        """
        self._report(max(0, int(done)), max(0, int(total)), str(note))


def current() -> Context:
    """Returns the running task; raises RuntimeError outside of tasks."""
    context = running()
    if context is None:
        raise RuntimeError('godelayed.current() outside of a task')
    return context


def running() -> Context | None:
    """Returns the running task, None outside of tasks."""
    return _current.get()


def enter(context: Context | None) -> None:
    """Makes context the current task of this thread."""
    _current.set(context)
