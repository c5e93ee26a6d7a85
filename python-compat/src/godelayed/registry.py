"""The functions that tasks may call: only those that the program has registered with @task."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any, Union

from .calls import checked_path
from .errors import ArgumentsError
from .options import MAX_BACKOFF
from .restore import Parameters
from .times import Seconds, milliseconds

# The waits before the retries, where the last one holds for all further retries; or a function of the number of retries
# so far.
Backoff = Union[Sequence[Seconds], 'Callable[[int], Seconds]']


@dataclasses.dataclass(frozen=True)
class Function:
    """A registered function, and the settings of its tasks that the tasks themselves do not give.

    Durations are ms; None means the worker's setting.
    """

    path: str
    call: Callable[..., Any]
    retry: int | None = None
    delays: tuple[int, ...] | None = None
    backoff: Callable[[int], Seconds] | None = None
    max_backoff: int | None = None
    timeout: int | None = None
    archive_on_timeout: bool = False
    coroutine: bool = False
    app: Any = None  # the application, a Delayed, and the queue of its calls; None if @task has not registered it
    queue: str | None = None
    isolated: bool = False

    @property
    def together(self) -> bool:
        """Whether its calls run beside others, on one event loop."""
        return self.coroutine and not self.isolated

    @functools.cached_property
    def parameters(self) -> Parameters:
        """Its parameters; read late, because annotations may name what comes after it in its module."""
        return Parameters(self.call)


class Registry:
    """A set of functions by path.

    Threads may share it. Most programs need only the one that godelayed.task uses.
    """

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._functions)

    def paths(self) -> list[str]:
        """Returns the paths that tasks may call, sorted."""
        return sorted(self._functions)

    @property
    def coroutines(self) -> bool:
        """Whether there are coroutine functions that run on one event loop."""
        return any(f.together for f in self._functions.values())

    @property
    def isolated(self) -> list[str]:
        """The paths of the functions that must run in a process of their own, sorted."""
        return sorted(f.path for f in self._functions.values() if f.isolated)

    def get(self, path: str) -> Function | None:
        """Returns the function of a path, or None."""
        return self._functions.get(path)

    def add(self, function: Function) -> None:
        """Registers a function.

        Raises ArgumentsError if another function has the path. If the same function is loaded again, it replaces the
        old one.
        """
        with self._lock:
            there = self._functions.get(function.path)
            if there is not None and _home(there.call) != _home(function.call):
                raise ArgumentsError(
                    f'path {function.path!r}: it is that of {_home(there.call)}; give {_home(function.call)} another '
                    'path'
                )
            self._functions[function.path] = function


def _home(call: Callable[..., Any]) -> str:
    return f'{getattr(call, "__module__", "?")}:{getattr(call, "__qualname__", repr(call))}'


default = Registry()


def described(
    function: Callable[..., Any],
    *,
    path: str | None = None,
    retry: int | None = None,
    backoff: Backoff | None = None,
    max_backoff: Seconds | None = None,
    timeout: Seconds | None = None,
    archive_on_timeout: bool = False,
    isolated: bool = False,
    app: Any = None,
    queue: str | None = None,
) -> Function:
    """Returns a function with its settings, after checking both. Delayed.task says what they mean."""
    if not callable(function):
        raise ArgumentsError(f'@task: expected a function, found {function!r}')
    name = path
    if name is None:
        name = _home(function)
        if '<' in name:
            raise ArgumentsError(
                f'@task: {name}: a function inside a function, or without a name, has no path of its own; give it one'
            )
    if ':' not in checked_path(name):
        raise ArgumentsError(
            f'@task: path {name!r}: expected "module:function"; paths without a colon are those of Go functions'
        )
    delays = waits = None
    if callable(backoff):
        waits = backoff
    elif backoff is not None:
        delays = tuple(_span(w, 'backoff', 0) for w in backoff)
        if not 1 <= len(delays) <= MAX_BACKOFF:
            raise ArgumentsError(f'@task: backoff: expected 1 to {MAX_BACKOFF} durations, found {len(delays)}')
    if retry is not None and type(retry) is not int:
        raise ArgumentsError(f'@task: retry: expected an int, found {retry!r}')
    return Function(
        name,
        function,
        retry,
        delays,
        waits,
        None if max_backoff is None else _span(max_backoff, 'max_backoff', 1),
        None if timeout is None else _span(timeout, 'timeout', 1),
        archive_on_timeout,
        inspect.iscoroutinefunction(function),
        app,
        queue,
        isolated,
    )


def _span(value: Seconds, name: str, least: int) -> int:
    ms = milliseconds(value, name)
    if ms < least:
        raise ArgumentsError(
            f'@task: {name}: expected {"a positive" if least else "no negative"} duration, found {value!r}'
        )
    return ms
