"""What synchronous and asynchronous queues share: from calls to scripts and their arguments, and from replies to ids."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import ArgumentsError, DelayedError, DuplicateError
from .keys import Keys
from .options import LOCK_LIFE, Options
from .scripts import ENLIST, ENQUEUE, GATHER, SCHEDULE, Script
from .task import Call, Packed, Stamp
from .values import MAX_BYTES, MAX_ELEMENTS

MAX_BATCH = 1000
MAX_BATCH_BYTES = 8 << 20
MAX_ENLISTED = 100
_LAPSE_PAGE = 100
_GROUP_BYTES = MAX_BYTES - (32 << 10)
_GROUP_VALUES = MAX_ELEMENTS - 512


@dataclasses.dataclass(frozen=True)
class Command:
    """One run of a script for some tasks. first is the position of the first of them in the caller's list."""

    script: Script
    keys: list[str]
    args: list[Any]
    ids: list[str]
    first: int = 0

    def ids_of(self, reply: Any) -> list[str]:
        """Returns the ids of the tasks, or of those that are there in their stead. A refused task is a DuplicateError."""
        if self.script is SCHEDULE and reply[0] == 0:
            raise self._duplicate(reply[1], self.ids[reply[1]])
        if self.script is not ENLIST:
            return self.ids
        if reply[0] == 0:
            raise self._duplicate(reply[1], _text(reply[2]))
        return [_text(other) or id for id, other in zip(self.ids, reply[1:])]

    def _duplicate(self, position: int, other: str) -> DuplicateError:
        what = f'task {self.first + position}' if len(self.ids) > 1 else 'the task'
        if other == self.ids[position]:
            return DuplicateError(f'{what}: a task with id {other!r} is there already', other)
        return DuplicateError(f'{what}: task {other!r} holds its lock', other)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def checked_wait(wait: int) -> int:
    """Returns the number of replicas that must have a task, if it can be one."""
    if not isinstance(wait, int) or isinstance(wait, bool) or wait < 0:
        raise ArgumentsError(f'wait: expected the number of replicas that must have a task, from 0, found {wait!r}')
    return wait


class Settings:
    """A queue without its connection."""

    def __init__(self, name: str, prefix: str, extended: bool, legacy: bool) -> None:
        if legacy and (extended or prefix):
            raise ArgumentsError('a legacy queue has neither extended messages nor a prefix: legacy workers do not know them')
        self.name = name
        self.keys = Keys(name, prefix)
        self.extended = extended
        self.settled = False  # Redis has recorded the form of Python tasks, and it is ours

    @property
    def form(self) -> str:
        """The form of Python tasks, as Redis records it."""
        return 'extended' if self.extended else 'plain'

    def check_form(self, found: Any) -> None:
        """Compares what Redis has recorded as the form of Python tasks."""
        form = _text(found)
        if form != self.form:
            raise DelayedError(
                f'queue {self.name!r} holds {form} Python tasks, but was opened for {self.form} ones: '
                f'open it with extended={form == "extended"}'
            )
        self.settled = True

    def messages(self, calls: Sequence[Call], options: Options) -> tuple[list[Packed], int]:
        """Returns the messages of calls, and the time in them, in ms. Faulty calls raise."""
        if options.task_id is not None and len(calls) > 1:
            raise ArgumentsError(f'option task_id with {len(calls)} tasks: an id names one task')
        now = time.time_ns() // 1_000_000
        stamp = Stamp(options, now, extended=self.extended)
        if len(calls) == 1:
            return [stamp.packed(calls[0])], now
        messages = []
        for i, c in enumerate(calls):
            try:
                messages.append(stamp.packed(c))
            except ArgumentsError as e:
                raise type(e)(f'call {i}: {e}') from None
        return messages, now

    def plain(self, options: Options) -> bool:
        """Whether tasks just become pending, so that they may go with others."""
        return options.place[0] == 'back' and options.group is None and not options.locked and options.task_id is None

    def commands(self, messages: Sequence[Packed], options: Options) -> Iterator[Command]:
        """Yields the commands that enqueue messages, in order."""
        enlists = options.locked or options.task_id is not None or options.front
        gathers = options.group is not None and options.place[0] == 'back'
        most = MAX_ENLISTED if enlists else MAX_BATCH
        first = 0
        while first < len(messages):
            size = n = 0
            for m in messages[first : first + most]:
                size += len(m.message)
                if n and (size > MAX_BATCH_BYTES or (gathers and m.group != messages[first].group)):
                    break
                n += 1
            if options.front and n < len(messages):
                raise ArgumentsError(f'option front with {len(messages)} tasks: {n} go to the front together')
            batch = messages[first : first + n]
            script, keys, args = (
                self._gather(batch, options) if gathers else self._enlist(batch, options) if enlists else self._file(batch, options)
            )
            yield Command(script, keys, args, [m.id for m in batch], first)
            first += n

    def enqueue(self, messages: Sequence[bytes]) -> tuple[Script, list[str], list[Any]]:
        """The script that makes messages pending."""
        return ENQUEUE, [self.keys.list, self.keys.noti], list(messages)

    def _file(self, batch: Sequence[Packed], options: Options) -> tuple[Script, list[str], list[Any]]:
        k = self.keys
        how, due = options.place
        if how == 'back':
            return self.enqueue([m.message for m in batch])
        args: list[Any] = [how, due]
        for m in batch:
            args += [m.id, m.message]
        return SCHEDULE, [k.scheduled, k.tasks, k.wake], args

    def _enlist(self, batch: Sequence[Packed], options: Options) -> tuple[Script, list[str], list[Any]]:
        k = self.keys
        keys = [
            k.list, k.noti, k.scheduled, k.retry, k.parked, k.tasks, k.info, k.completed, k.locks, k.locked, k.revoked, k.wake, k.control
        ]  # fmt: skip
        life = options.life if options.locked else 0
        reserve = max(LOCK_LIFE, life) if options.task_id is not None else 0
        args: list[Any] = [*options.place, k.signals, LOCK_LIFE, _LAPSE_PAGE]
        for m in batch:
            args += [m.id, m.message, reserve, m.lock, life, options.conflict]
        return ENLIST, keys, args

    def _gather(self, batch: Sequence[Packed], options: Options) -> tuple[Script, list[str], list[Any]]:
        k = self.keys
        group = batch[0].group
        args: list[Any] = [group, *options.gather, sum(m.size for m in batch), sum(m.values for m in batch), _GROUP_BYTES, _GROUP_VALUES]
        args += [m.message for m in batch]
        return GATHER, [k.group + group, k.groups, k.gathered, k.wake], args
