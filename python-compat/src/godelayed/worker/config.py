"""The settings of a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import ArgumentsError
from ..keys import check_name
from ..times import Seconds, milliseconds

Queues = str | Sequence[str] | Mapping[str, int]

_SHORTEST_LIFE = 0.5
_MOST = 10_000
_MAX_WEIGHT = 1000


@dataclass(frozen=True)
class WorkerConfig:
    """The settings of a worker. Durations are seconds or timedeltas.

    queues: one name; several names in the order of their priority; or names with weights from 1 to 1,000, from which
    the worker chooses at random in proportion to the weights. concurrency: how many tasks run at once; None means the
    number of processors. coroutines: how many coroutines run at once besides them, on one event loop that lives as long
    as its process, or thread with processes=False. processes: False runs tasks in threads of the worker's own process.
    That is much faster for short tasks, but the worker cannot end a task that exceeds its timeout or is cancelled: the
    task finds out by Context.interrupted, and what it raises then counts. max_retry: how often a failed task is tried
    again if neither the task nor its function says. backoff: a function that takes the number of retries so far and
    returns how long to wait before the next one; None means 5 s, doubled each time, at most 6 h, ± 25 %. timeout:
    limits the runs of tasks if neither they nor their function say; None means without a limit. kill_after: how long a
    task may take to end after it was told to, for example because of its timeout; then the worker kills its process.
    prefetch: how many tasks beyond concurrency the worker claims ahead; None means as many as take about 5 ms.
    heartbeat_life: how long the worker counts as alive after its last heartbeat. Workers and sweepers of one queue
    should agree on it. sweep_interval, sweep: the longest time between two passes of the embedded sweeper; it also
    looks when heartbeats of other workers are about to end. False leaves sweeping to other workers. periodic: False
    leaves the ticks of periodic entries to other workers. grace, cancel_grace: how long to wait for tasks when the
    worker stops, and then for those that were told to end. legacy: the queues are shared with workers of keakon's
    package or go-delayed; the worker takes only tasks that have a notification. go_queue: the name of a queue to which
    the worker hands on Go tasks; None means that it parks them. max_tasks, max_time, max_memory: stop after this many
    tasks, after this time, or when the worker and its processes take more bytes together than that, where shared ones
    count for each. max_tasks_per_process: replace a process after this many tasks. max_memory_per_process: replace one
    after a task if it takes more bytes. stop_when_empty: stop when there is nothing to do. archive_max, archive_for:
    how many archived tasks a queue keeps, and for how long. prefix: the prefix of the keys, the same as that of the Go
    handle. pool_start: called once, in the worker's own process, before it claims tasks. start: called in each worker
    process before its first task, or once with processes=False.
    """

    queues: Queues
    concurrency: int | None = None
    coroutines: int = 100
    processes: bool = True
    max_retry: int = 25
    backoff: Callable[[int], Seconds] | None = None
    timeout: Seconds | None = None
    kill_after: Seconds = 3.0
    prefetch: int | None = None
    heartbeat_life: Seconds = 15.0
    sweep_interval: Seconds = 8.0
    sweep: bool = True
    periodic: bool = True
    grace: Seconds = 25.0
    cancel_grace: Seconds = 3.0
    legacy: bool = False
    go_queue: str | None = None
    max_tasks: int | None = None
    max_time: Seconds | None = None
    max_memory: int | None = None
    max_tasks_per_process: int | None = None
    max_memory_per_process: int | None = None
    stop_when_empty: bool = False
    archive_max: int = 10_000
    archive_for: Seconds = 90 * 24 * 3600.0
    prefix: str = ''
    pool_start: Callable[[], object] | None = None
    start: Callable[[], object] | None = None

    def names(self) -> list[str]:
        """Returns the names of the queues after checking them."""
        names = [self.queues] if isinstance(self.queues, str) else list(self.queues)
        if not names:
            raise ArgumentsError("no queues: name at least one, as in queues=['mail']")
        for i, name in enumerate(names):
            check_name(name)
            if name in names[:i]:
                raise ArgumentsError(f'queue {name!r} is named twice')
        return names

    def weights(self) -> list[int] | None:
        """Returns the weights of the queues; None if the worker serves them in order."""
        if not isinstance(self.queues, Mapping):
            return None
        for name, weight in self.queues.items():
            if type(weight) is not int or not 1 <= weight <= _MAX_WEIGHT:
                raise ArgumentsError(f'queue {name!r} has weight {weight!r}: expected 1 to {_MAX_WEIGHT}')
        return list(self.queues.values())

    def plan(self) -> str:
        """Says in which order the queues are served, for people."""
        weights, names = self.weights(), self.names()
        if weights is None:
            return ' '.join(names) + ' (strict)'
        return ', '.join(f'{name}={weight}' for name, weight in zip(names, weights)) + ' (weighted)'

    def slots(self) -> int:
        """Returns how many tasks run at once."""
        n = self.concurrency if self.concurrency is not None else os.cpu_count() or 1
        if type(n) is not int or not 1 <= n <= _MOST:
            raise ArgumentsError(f'concurrency is {n!r}: expected 1 to {_MOST}')
        return n

    def seconds(self, name: str, least: float = 0.0) -> float:
        """Returns one of the durations in seconds, after checking it."""
        value = getattr(self, name)
        s = milliseconds(value, name) / 1000
        if s < least:
            raise ArgumentsError(f'{name} is {value!r}: expected at least {least} s')
        return s

    def check(self, isolated: Sequence[str] = ()) -> None:
        """Raises ArgumentsError if a setting is invalid. isolated are the paths of functions that need processes."""
        if isolated and not self.processes:
            raise ArgumentsError(
                f'{", ".join(isolated)}: expected a worker with processes, which isolated functions need, found '
                'processes=False'
            )
        self.names()
        self.weights()
        self.slots()
        for name, least in (
            ('kill_after', 0.0),
            ('heartbeat_life', _SHORTEST_LIFE),
            ('sweep_interval', 0.01),
            ('grace', 0.0),
            ('cancel_grace', 0.0),
            ('archive_for', 0.001),
        ):
            self.seconds(name, least)
        if type(self.coroutines) is not int or not 1 <= self.coroutines <= _MOST:
            raise ArgumentsError(f'coroutines is {self.coroutines!r}: expected 1 to {_MOST}')
        for name in ('timeout', 'max_time'):
            if getattr(self, name) is not None:
                self.seconds(name, 0.001)
        if self.processes and not hasattr(os, 'fork'):
            raise ArgumentsError('this system cannot fork processes: expected processes=False')
        if self.legacy and self.prefix:
            raise ArgumentsError(f'legacy with the prefix {self.prefix!r}: legacy workers do not know it')
        if self.go_queue is not None:
            check_name(self.go_queue)
        for name, least in (
            ('max_tasks', 1),
            ('max_tasks_per_process', 1),
            ('max_memory', 1 << 20),
            ('max_memory_per_process', 1 << 20),
            ('prefetch', 0),
            ('archive_max', 1),
        ):
            n = getattr(self, name)
            if n is not None and (type(n) is not int or n < least):
                raise ArgumentsError(f'{name} is {n!r}: expected an integer, at least {least}')
