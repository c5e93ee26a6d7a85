"""What tests use: queues in memory, expectations about them, and a worker that runs when the test says so."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Literal

from .. import app, middleware, registry
from ..errors import RemoteTraceback
from ..registry import Registry
from ..times import from_milliseconds, milliseconds
from .server import Server
from .snapshots import Expectation, Snapshot, snapshot, snapshots
from .stepper import Step, Stepper

if TYPE_CHECKING:
    import redis
    import redis.asyncio

    from ..times import Seconds

_MILLISECOND = datetime.timedelta(milliseconds=1)
_SHOWN = 30  # tasks that a message shows
_DEEPEST = 20  # tasks that run within one another


@dataclasses.dataclass(frozen=True)
class Run:
    """A call of a function. error is what it raised, stack the traceback of that; failed says whether that counts as a
    failure. outcome is what happened to the task: done, retried, archived, snoozed, dropped, …"""

    task: Snapshot
    attempt: int
    error: str
    stack: str
    failed: bool
    outcome: str


@dataclasses.dataclass
class Result:
    """What run has run. archived and parked are the tasks that came there meanwhile, but for calls of Go functions,
    which a Python worker always parks; waiting are those still to run. elapsed is how far time was moved on. endless
    says that run gave up after its most calls."""

    runs: list[Run] = dataclasses.field(default_factory=list[Run])
    archived: list[Snapshot] = dataclasses.field(default_factory=list[Snapshot])
    parked: list[Snapshot] = dataclasses.field(default_factory=list[Snapshot])
    waiting: list[Snapshot] = dataclasses.field(default_factory=list[Snapshot])
    elapsed: datetime.timedelta = datetime.timedelta()
    endless: bool = False

    @property
    def failed(self) -> list[Run]:
        """The calls that failed."""
        return [r for r in self.runs if r.failed]

    def problems(self) -> list[str]:
        """Returns all that drain would complain about."""
        said = [f'{r.task} failed at attempt {r.attempt} ({r.outcome}): {r.error}' for r in self.failed]
        ran = {r.task.id for r in self.failed}
        said += [t.told() for t in self.archived if t.id not in ran]
        said += [f'{t.told()}: import the module that registers it' for t in self.parked]
        if self.endless:
            said.append(f'no end after {len(self.runs)} calls; still to run: {_listed(self.waiting)}')
        return said


class InMemory:
    """Redis and a worker within the process, for one test: with InMemory() as delayed.

    As long as it is open, all applications (Delayed), and tasks of @godelayed.task, use it, whatever their servers.
    Other queues can be made for its `redis`. Scripts and worker are those of production: arguments are packed and
    unpacked, options hold, failed tasks are tried again. Its time begins with the time of the test's start and stands
    still: drain, run and advance move it on; the clock of the process does not move with it.

    registry has the functions, as in Worker. The other arguments are settings of WorkerConfig: max_retry, backoff,
    timeout and archive_max. Timeouts do not end functions, as in a worker without processes.
    """

    def __init__(self, registry: Registry | None = None, **settings: Any) -> None:
        self._server = Server()
        self._registry = registry
        self._settings = settings
        self._client = self._server.client()
        self._steppers: dict[tuple[str, bool], tuple[set[str], Stepper]] = {}
        self._depth = 0
        self._problems: list[tuple[str, str]] = []
        self.redis: redis.Redis = self._server.client(fails=True)
        self.eager = False
        """Whether delay runs the function at once, before it returns, and what that delays within it.

        Tasks with countdown or eta, and retries, wait for drain. delay returns a reference as always; an error of the
        function raises an AssertionError when the test is over.
        """

    def __enter__(self) -> InMemory:
        self._before = app.use(self)
        self._around = contextlib.contextmanager(self._enqueued)
        middleware.enqueues.append(self._around)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        middleware.enqueues.remove(self._around)
        app.use(self._before)
        for made in self._steppers.values():
            made[1].close()
        if self._problems and kind is None:
            _fail('tasks that ran at once failed', [text for text, _ in self._problems], self._problems[0][1])

    def async_redis(self) -> redis.asyncio.Redis:
        """Returns a new client of the same server for asyncio."""
        return self._server.async_client()

    @contextlib.contextmanager
    def broken(self, how: Literal['down', 'full', 'lost']) -> Generator[None]:
        """Lets Redis fail those who enqueue or ask, in a with statement: `down`, nobody can connect, which raises
        UnavailableError; `full`, its memory is, which raises FullError; `lost`, the connection breaks before the answer
        to who enqueues, which raises UnknownError, although the task is enqueued. What this class does goes on."""
        before, self._server.fault = self._server.fault, how
        try:
            yield
        finally:
            self._server.fault = before

    @property
    def now(self) -> datetime.datetime:
        """The time by which tasks become due."""
        now = from_milliseconds(self._server.ms)
        assert now is not None
        return now

    def advance(self, by: Seconds) -> None:
        """Lets time pass. Nothing runs: drain and run run what has become due."""
        ms = milliseconds(by, 'by')
        if ms < 0:
            raise ValueError(f'advance({by!r}): expected a duration from 0, time does not go back')
        self._server.ms += ms
        for _, stepper in self._steppers.values():
            stepper.beat()

    def tasks(self, queue: str | None = None) -> list[Snapshot]:
        """Returns the tasks of a queue, or of all: pending ones in their order, then those of other states."""
        return [
            t
            for prefix, names in self._queues().items()
            for name in sorted(names)
            if queue is None or name == queue
            for t in snapshots(self._client, name, prefix[0])
        ]

    def require_enqueued(self, function: Any, *args: Any, **kwargs: Any) -> Snapshot:
        """Fails the test unless a call of function with these arguments is still to run: pending, scheduled, gathered
        or waiting for a retry, on any queue. Returns the first such task.

        function is what Queue.delay takes. Arguments are compared as they reach the function, by position or by name,
        defaults included. unittest.mock.ANY equals each value, and ... as the only argument all arguments.
        """
        __tracebackhide__ = True
        found = self._found(1, None, function, args, kwargs)
        return found[0]

    def require_count(self, n: int, function: Any, *args: Any, **kwargs: Any) -> list[Snapshot]:
        """Fails the test unless exactly n calls of function with these arguments are still to run; see
        require_enqueued. Returns them."""
        __tracebackhide__ = True
        return self._found(n, n, function, args, kwargs)

    def refute_enqueued(self, function: Any, *args: Any, **kwargs: Any) -> None:
        """Fails the test if a call of function with these arguments is still to run; see require_enqueued."""
        __tracebackhide__ = True
        self._found(0, 0, function, args, kwargs)

    def require_empty(self, queue: str | None = None) -> None:
        """Fails the test if anything is still to run, on a queue or on all."""
        __tracebackhide__ = True
        waiting = [t for t in self.tasks(queue) if t.waits]
        if waiting:
            raise AssertionError(f'expected that nothing is enqueued, found{_listed(waiting)}')

    def _found(self, least: int, most: int | None, function: Any, args: tuple[Any, ...], kwargs: Any) -> list[Snapshot]:
        __tracebackhide__ = True
        expected, tasks = Expectation(function, args, kwargs), self.tasks()
        found = [t for t in tasks if expected.met(t)]
        if len(found) < least or most is not None and len(found) > most:
            times = {0: 'not enqueued', 1: 'enqueued'}.get(least, f'enqueued {least} times')
            raise AssertionError(
                f'expected {times}, found {len(found)} times:\n    {expected}\nenqueued are'
                f'{_listed([t for t in tasks if t.waits]) or " none"}'
            )
        return found

    def drain(self) -> None:
        """Runs every task that is still to run, and those that these delay, until none is left: one after the other, in
        the thread of the test, in the order in which they are due. Time moves on to the next due task whenever none is
        pending.

        Raises an AssertionError if a function failed, even if a retry went well, if a task was archived, if its
        function is not registered, or if there is no end after 10,000 calls.
        """
        __tracebackhide__ = True
        result = self.run()
        problems = result.problems()
        if problems:
            _fail('drain', problems, next((r.stack for r in result.failed), ''))

    def run(self, within: Seconds | None = None, most: int = 10_000) -> Result:
        """Is drain with a result instead of an AssertionError.

        within bounds how far time moves on, and moves it on by exactly that; None: as far as tasks need. most bounds
        the calls.
        """
        left = None if within is None else milliseconds(within, 'within')
        start, before = self._server.ms, {(t.queue, t.id) for t in self.tasks() if t.state in ('archived', 'parked')}
        result = Result()
        while True:
            step = self._step()
            if step is not None:
                if step.called:
                    task = snapshot(step.queue, 'active', '', step.message)
                    run = Run(task, task.retried + 1, step.error, step.stack, step.failed, step.outcome)
                    result.runs.append(run)
                result.endless = len(result.runs) >= most and any(t.waits for t in self.tasks())
                if len(result.runs) >= most:
                    break
                continue
            due = [t.due for t in self.tasks() if t.due and t.state in ('scheduled', 'retry')]
            wait = (min(due) - self.now) // _MILLISECOND if due else 0
            if wait <= 0 or left is not None and wait > left:
                self.advance((left or 0) / 1000)
                break
            self.advance(wait / 1000)
            left = None if left is None else left - wait
        result.elapsed = datetime.timedelta(milliseconds=self._server.ms - start)
        for t in self.tasks():
            if t.waits:
                result.waiting.append(t)
            elif t.state in ('archived', 'parked') and (t.queue, t.id) not in before:
                (result.archived if t.state == 'archived' else result.parked).append(t)
        return result

    def _queues(self) -> dict[tuple[str, bool], set[str]]:
        """Returns the names of the queues that were used, by prefix and whether they are legacy queues."""
        found: dict[tuple[str, bool], set[str]] = {}
        client: Any = self._client
        for key in client.keys('*delayed_queues'):
            prefix = key.decode()[: -len('delayed_queues')]
            for name, legacy in client.hgetall(key).items():
                found.setdefault((prefix, legacy == b'1'), set()).add(name.decode())
        return found

    def _step(self) -> Step | None:
        for how, names in self._queues().items():
            known, stepper = self._steppers.get(how, (set[str](), None))
            if stepper is None or known != names:
                if stepper is not None:
                    stepper.close()
                stepper = Stepper(
                    self._client,
                    sorted(names),
                    registry.default if self._registry is None else self._registry,
                    prefix=how[0],
                    legacy=how[1],
                    **self._settings,
                )
                stepper.beat()
                self._steppers[how] = names, stepper
            step = stepper.step()
            if step is not None:
                return step
        return None

    def _enqueued(self, _: middleware.Enqueuing) -> Generator[None]:
        yield
        if not self.eager:
            return
        if self._depth == _DEEPEST:
            self._problems.append((f'tasks delay tasks {_DEEPEST} deep: a chain without end?', ''))
            self.eager = False
            return
        self._depth += 1
        try:
            while self.eager and (step := self._step()) is not None:
                task = snapshot(step.queue, 'active', '', step.message)
                if (
                    step.failed
                    or step.outcome in ('archived', 'expired')
                    or step.outcome == 'parked'
                    and ':' in task.function
                ):
                    self._problems.append((f'{task} {step.outcome}: {step.error}', step.stack))
        finally:
            self._depth -= 1


def _listed(tasks: list[Snapshot]) -> str:
    lines = [f'\n    {t.told()}' for t in tasks[:_SHOWN]]
    return ''.join(lines) + (f'\n    … and {len(tasks) - _SHOWN} more' if len(tasks) > _SHOWN else '')


def _fail(what: str, problems: list[str], stack: str) -> None:
    __tracebackhide__ = True
    lines = ''.join(f'\n    {p}' for p in problems[:_SHOWN])
    more = f'\n    … and {len(problems) - _SHOWN} more' if len(problems) > _SHOWN else ''
    raise AssertionError(f'{what}:{lines}{more}') from RemoteTraceback(stack) if stack else None
