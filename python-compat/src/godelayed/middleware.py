"""What a program attaches to its tasks: middleware around each run and around each call that enqueues, and hooks at the
start and the end of workers' processes. All of it holds for the whole process."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import ArgumentsError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .calls import Call
    from .context import Context

F = TypeVar('F', bound=Callable[..., Any])
T = TypeVar('T')


@dataclasses.dataclass
class Enqueuing:
    """A call of delay or delay_many, for middleware.

    queue is the queue's name, calls are what is enqueued. headers are added to the tasks, except where the call's own
    options have the same key; Python tasks of a legacy queue go without. ids are those of the tasks, once they are
    enqueued, '' of a task that carries none.
    """

    queue: str
    calls: Sequence[Call]
    headers: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    ids: list[str] = dataclasses.field(default_factory=list[str])


Around = Callable[[T], 'AbstractContextManager[Any]']

# In their order: the first one is outermost. Tests may change them.
tasks: list[Around[Context]] = []
enqueues: list[Around[Enqueuing]] = []
pool_starts: list[Callable[[], object]] = []
process_starts: list[Callable[[], object]] = []
process_ends: list[Callable[[], object]] = []

_NOTHING = contextlib.nullcontext()


def around_task(function: F) -> F:
    """Makes a function middleware of all tasks: it gets the Context of each run, and surrounds it.

    It is a generator function that yields once, or returns a context manager. Exceptions of the task are raised where
    it yields; if it raises another one or none, that counts. Coroutines are surrounded in the same way.
    """
    tasks.append(_manager(function))
    return function


def around_enqueue(function: F) -> F:
    """Makes a function middleware of all calls of delay and delay_many, as around_task does. It gets an Enqueuing."""
    enqueues.append(_manager(function))
    return function


def on_pool_start(function: F) -> F:
    """Has a worker call a function once, in its own process, before it claims tasks."""
    pool_starts.append(function)
    return function


def on_process_start(function: F) -> F:
    """Has each process that runs tasks call a function before its first task; a worker without processes does so."""
    process_starts.append(function)
    return function


def on_process_end(function: F) -> F:
    """Has each process that runs tasks call a function when it ends in good order, for at most two seconds."""
    process_ends.append(function)
    return function


def _manager(function: Callable[..., Any]) -> Callable[[Any], AbstractContextManager[Any]]:
    if not callable(function) or inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        raise ArgumentsError(
            f'middleware {function!r}: expected a generator function that is not async, or what returns a context '
            'manager; it surrounds coroutines too'
        )
    return contextlib.contextmanager(function) if inspect.isgeneratorfunction(function) else function


def surround(those: Sequence[Around[T]], what: T | None) -> AbstractContextManager[Any]:
    """Enters all of those, and returns what leaves them."""
    if not those or what is None:
        return _NOTHING
    with contextlib.ExitStack() as stack:
        for around in those:
            stack.enter_context(around(what))
        return stack.pop_all()


def call_all(*hooks: Callable[[], object] | None) -> None:
    """Calls hooks in their order."""
    for hook in hooks:
        if hook is not None:
            hook()
