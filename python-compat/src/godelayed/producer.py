"""What synchronous and asynchronous queues share: from calls to scripts and their arguments, and from replies to references."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import ArgumentsError, DelayedError, DuplicateError
from .keys import Keys
from .scripts import ENQUEUE, SCHEDULE, Script
from .task import Call, Options, message, milliseconds, moment, new_id

MAX_BATCH = 1000
MAX_BATCH_BYTES = 8 << 20


@dataclasses.dataclass(frozen=True)
class Command:
    """One run of a script for some tasks."""

    script: Script
    keys: list[str]
    args: list[Any]
    ids: list[str]

    def check(self, reply: Any) -> None:
        """Raises what a reply says went wrong."""
        if self.script is SCHEDULE and reply[0] == 0:
            id = self.ids[reply[1]]
            raise DuplicateError(f'a task with id {id!r} exists already', id)


class Settings:
    """A queue without its connection."""

    def __init__(self, name: str, prefix: str, extended: bool, legacy: bool) -> None:
        if legacy and (extended or prefix):
            raise ArgumentsError('a legacy queue has neither extended messages nor a prefix: legacy workers do not know them')
        self.name = name
        self.keys = Keys(name, prefix)
        self.extended = extended
        self.legacy = legacy
        self.settled = False

    @property
    def form(self) -> str:
        return 'extended' if self.extended else 'plain'

    def check_form(self, found: Any) -> None:
        """Compares what Redis has recorded as the form of Python tasks."""
        form = found.decode() if isinstance(found, bytes) else found
        if form != self.form:
            raise DelayedError(
                f'queue {self.name!r} holds {form} Python tasks, but was opened for {self.form} ones: '
                f'open it with extended={form == "extended"}'
            )
        self.settled = True

    def commands(self, calls: Sequence[Call], options: Options) -> Iterator[Command]:
        """Yields the commands that enqueue calls, in order. Faulty calls raise before the first is yielded."""
        if options.task_id is not None and len(calls) > 1:
            raise ArgumentsError(f'option task_id with {len(calls)} tasks: an id names one task')
        now = time.time_ns() // 1_000_000
        ids = [options.task_id or new_id() for _ in calls]
        messages = [message(c, options, id, now, extended=self.extended, legacy=self.legacy) for c, id in zip(calls, ids)]
        first = 0
        while first < len(messages):
            size = n = 0
            for m in messages[first : first + MAX_BATCH]:
                size += len(m)
                if n and size > MAX_BATCH_BYTES:
                    break
                n += 1
            yield self._command(ids[first : first + n], messages[first : first + n], options)
            first += n

    def _command(self, ids: list[str], messages: list[bytes], options: Options) -> Command:
        k = self.keys
        if options.eta is None and (options.countdown is None or milliseconds(options.countdown, 'countdown') <= 0):
            return Command(ENQUEUE, [k.list, k.noti], list(messages), ids)
        if options.eta is not None:
            args: list[Any] = ['at', moment(options.eta, 'eta')]
        else:
            args = ['in', milliseconds(options.countdown or 0, 'countdown')]
        for id, m in zip(ids, messages):
            args += [id, m]
        return Command(SCHEDULE, [k.scheduled, k.tasks, k.wake], args, ids)
