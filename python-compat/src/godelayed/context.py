"""What a task can ask and tell about itself while it runs."""

from __future__ import annotations

import contextvars
import datetime
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from .times import from_milliseconds

_current: contextvars.ContextVar[Context | None] = contextvars.ContextVar('godelayed_task', default=None)


class Context:
    """The task that runs. current() returns it."""

    __slots__ = ('_interrupt', '_meta', '_report', 'path', 'queue', 'tell')

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
        # Tells the call to end, if an exception in its place would not do: why, and what runs just now.
        self.tell: Callable[[str, FrameType | None], None] | None = None

    @property
    def id(self) -> str | None:
        """The task's id; None for plain messages, which have none."""
        return self._meta.get('id')

    @property
    def attempt(self) -> int:
        """Which try this is, from 1. Always 1 for plain messages, which do not say."""
        return int(self._meta.get('rt', 0)) + 1

    @property
    def deaths(self) -> int:
        """How often a worker died while it ran the task."""
        return int(self._meta.get('d', 0))

    @property
    def headers(self) -> Mapping[str, str]:
        """What the producer gave along, such as a trace context."""
        return dict(self._meta.get('h') or {})

    @property
    def enqueued_at(self) -> datetime.datetime | None:
        """When it was enqueued, by its producer's clock; None if unknown."""
        ms = self._meta.get('at')
        return from_milliseconds(ms) if ms else None

    @property
    def interrupted(self) -> str | None:
        """Why the task should end: 'timeout', 'canceled', 'lost', 'stopping', or None.

        In worker processes a TaskInterrupted is raised as well; in the worker's own threads nothing but this tells.
        """
        return self._interrupt()

    def progress(self, done: int, total: int = 0, note: str = '') -> None:
        """Reports how far the task is, in units of its choice, and a note of up to 4 KiB.

        It may be called as often as is convenient: at most ten reports a second reach Redis. Tasks without an id report
        to nobody.
        """
        self._report(max(0, int(done)), max(0, int(total)), str(note))


def current() -> Context:
    """Returns the task that runs; a RuntimeError outside of tasks."""
    context = _current.get()
    if context is None:
        raise RuntimeError('godelayed.current() outside of a task')
    return context


def enter(context: Context | None) -> None:
    """Makes a task the current one of this thread."""
    _current.set(context)
