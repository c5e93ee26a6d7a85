"""References to tasks: their states, their results and how they end."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any, Generic

import redis.exceptions

from .asks import Asks, look
from .errors import CanceledError, NoIdError, NoResultError, UnavailableError, WaitTimeoutError
from .info import Outcome
from .link import Blocking, Link, run
from .options import Options
from .restore import restore
from .signature import R
from .text import one_line
from .times import Seconds, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from .queue import Queue

# What workers publish when a task has ended and left nothing behind.
REPLACED = (b'replaced', 'replaced', b'canceled', 'canceled')

LOOK_EVERY = 5.0  # seconds between two looks of a caller that waits and has received no signal
VERIFY_EVERY = 1.0  # seconds between two looks whether its subscription leads to the server that serves now
QUIET = 5.0  # seconds of silence before a PING, and until its answer
_PAUSES = (0.05, 1.0)  # seconds, first and longest, between tries to subscribe while Redis is away


def pause(failures: int) -> float:
    """Returns how many seconds to wait after that many failures in a row."""
    return min(_PAUSES[0] * 2.0 ** min(failures, 10), _PAUSES[1])


def look_after() -> float:
    """Returns the seconds until the next look, somewhat random, so that callers do not all look at the same time."""
    return LOOK_EVERY * random.uniform(0.8, 1.2)


class Base(Asks, Generic[R]):
    """A reference, whatever the client of its queue.

    options are those of the call that made the task; None if unknown. made is when that was, in ms since 1970. loose:
    the message carries no id, so the id names the task only while it is scheduled. returns gives the annotation of what
    the function returns.
    """

    __slots__ = ('_loose', '_made', '_options', '_returns', 'id', 'queue')

    def __init__(
        self,
        queue: Any,
        id: str,
        options: Options | None = None,
        made: int = 0,
        loose: bool = False,
        returns: Callable[[], Any] | None = None,
    ) -> None:
        self.queue = queue
        self.id = id
        self._options = options
        self._made = made
        self._loose = loose
        self._returns = returns

    def __repr__(self) -> str:
        return f'Ref({self})'

    def __str__(self) -> str:
        return one_line(f'{self.queue.name}/{self.id}')

    def _place(self) -> tuple[Any, Any, str]:
        """Returns what questions about the task need. Raises NoIdError if the id is empty."""
        if not self.id:
            raise NoIdError(
                'the task has no id: Python tasks of a legacy queue carry none, or Queue.ref was given an empty one'
            )
        return self.queue._link, self.queue._settings.keys, self.id

    def _check_kept(self) -> None:
        """Raises an error if nothing is kept of the task, because waiting for it would never end."""
        self._place()
        if self._options is None:
            return
        if not self._options.kept:
            raise NoResultError(
                f'task {self} was enqueued without keep_result or retention, so nothing tells of its end: give one to '
                'Queue.options'
            )
        if self._options.group is not None:
            raise NoResultError(
                f'call {self} is gathered with others, and one task is made of all: wait for that one by its id, that '
                'of the first'
            )

    async def _result(self, timeout: Seconds | None = None) -> R:
        self._check_kept()
        until = None if timeout is None else time.monotonic() + milliseconds(timeout, 'timeout') / 1000
        found: Outcome | None = None
        failures, trouble, before = 0, '', self._cancellations()

        async def look() -> Outcome | None:
            nonlocal failures, trouble
            try:
                found = await self._outcome()
            except UnavailableError as e:
                failures, trouble = failures + 1, f'; Redis could not be asked: {e}'
                return None
            failures = 0
            return found

        found = await look()
        if found is None:
            with self.queue._listen(self.queue._settings.keys.ended(self.id)) as told:
                while found is None:
                    if self._cancellations() > before:  # redis-py swallowed one while it made or closed a connection
                        raise asyncio.CancelledError
                    left = pause(failures - 1) if failures else look_after()
                    if until is not None:
                        left = min(left, until - time.monotonic())
                    if left <= 0:
                        raise WaitTimeoutError(f'task {self} has not ended within the timeout of {timeout}{trouble}')
                    await told.wait(left)
                    found = await look()
                    if found is None and told.replaced:
                        text = 'another task has taken its place, or its group leaves it out'
                        raise CanceledError(self.id, 'canceled', 'canceled', text, 0, 0, None)
        value: R = found.value()
        return value if self._returns is None else restore(value, self._returns())

    def _cancellations(self) -> int:
        """Returns how often this asyncio task was asked to cancel."""
        return 0

    async def _outcome(self) -> Outcome | None:
        link, keys, id = self._place()
        # An older task with this id is another one. If the id is random, there is no other.
        own = self._options is not None and self._options.task_id is not None
        return (await look(link, keys, id)).outcome(id, self._made if own else 0)


class Ref(Base[R]):
    """Names an enqueued task, whose result is an R. Keep its `id` to find the task from another process, with
    Queue.ref.

    A Python task of a legacy queue carries no id: it has one only while it is scheduled.
    """

    __slots__ = ()

    queue: Queue

    @property
    def ref(self) -> Ref[Any]:
        """The same reference without a type: its result is the value as it came."""
        return Ref(self.queue, self.id, self._options, self._made, self._loose)

    def result(self, timeout: Seconds | None = None) -> R:
        """Waits until the task has ended and returns what its function returned, None if it returns nothing.

        timeout is in seconds, or a timedelta. None waits without a limit: for ever if there never was a task with this
        id. The task must have keep_result or retention. Redis tells the caller when the task has ended, over a
        connection of the client that is in use meanwhile. While Redis is unreachable, even at the first look, it keeps
        trying until the timeout is over.

        If the reference came from a function with annotations, the result has the annotated type: dataclasses, tuples,
        enums and datetimes are made from what was sent, and a list, a map or bytes that is nil in Go becomes empty.

        Errors: TaskError if the task has failed for good, CanceledError if it was cancelled, NoResultError,
        WaitTimeoutError, DelayedError if the result does not fit the annotation.
        """
        return run(self._result(timeout))

    state = Blocking(Asks._state)
    info = Blocking(Asks._info)
    progress = Blocking(Asks._progress)
    cancel = Blocking(Asks._cancel)
    delete = Blocking(Asks._delete)
    run_again = Blocking(Asks._run_again)


class Told:
    """A caller that waits for messages of a channel, over a connection of its own."""

    def __init__(self, link: Link, channel: str) -> None:
        self.replaced = False  # whether another task has replaced the one that the caller waits for
        self._link = link
        self._channel = channel
        self._pubsub: Any = None
        self._heard = 0.0  # monotonic
        self._pinged = False
        self._failures = 0

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pubsub is not None:
            self._link.drop(self._pubsub.connection)
            self._pubsub.close()
            self._pubsub = None

    async def wait(self, timeout: float) -> None:
        """Waits until something was published, or may have been missed, or until timeout seconds are over."""
        end = time.monotonic() + timeout
        try:
            if self._pubsub is None:
                self._heard, self._pinged = time.monotonic(), False
                self._pubsub = self._link.client.pubsub()
                self._pubsub.subscribe(self._channel)
                self._link.adopt(self._pubsub.connection)
            message: Any = None
            while message is None and (left := end - time.monotonic()) > 0:
                # A message says that the task has ended or that the subscription is active; None: there was none.
                message = self._pubsub.get_message(timeout=min(left, VERIFY_EVERY))
                if message is None and left > VERIFY_EVERY and not await self._sound():
                    self.__exit__()
                    return
            self.replaced = message is not None and message['data'] in REPLACED
            self._failures = 0
            if message is not None:
                self._heard, self._pinged = time.monotonic(), False
        except redis.exceptions.RedisError:
            self.__exit__()
            time.sleep(min(pause(self._failures), timeout))
            self._failures += 1

    async def _sound(self) -> bool:
        """Returns whether messages may still come over the subscription."""
        await self._link.verify()
        if not self._link.current(self._pubsub.connection):
            return False
        if time.monotonic() - self._heard > QUIET:
            if self._pinged:
                return False
            self._pubsub.ping()
            self._heard, self._pinged = time.monotonic(), True
        return True
