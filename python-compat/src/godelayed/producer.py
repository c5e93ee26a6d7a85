"""What queues for blocking clients and for asyncio share: turning calls into runs of scripts, and replies into ids."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .calls import Call, Packed, Stamp
from .cluster import check_tag
from .errors import ArgumentsError, BatchError, DelayedError, DuplicateError
from .keys import Keys
from .link import Link
from .middleware import Enqueuing, enqueues, surround
from .options import LOCK_LIFE, Options
from .published import Published
from .text import is_text
from .values import MAX_BYTES, MAX_ELEMENTS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import OptionValues

Q = TypeVar('Q', bound='Producer')

MAX_BATCH = 1000
MAX_FILED = 500  # the same for tasks that wait until they are due, or in a group
GROUP_COST = 4  # how many tasks each group after the first counts as, because it takes Redis several times as long
MAX_CALL_BYTES = 1 << 20  # of the messages that one call takes, moves or reads, unless the first alone is larger
MAX_ENLISTED = 100
# Seconds for which a producer relies on the form of Python tasks that Redis has confirmed. Later it asks again, because
# an empty queue may have changed to the other form.
_SETTLE_LIFE = 1.0
_GROUP_BYTES = MAX_BYTES - (32 << 10)
_GROUP_VALUES = MAX_ELEMENTS - 512


@dataclasses.dataclass(frozen=True)
class Command:
    """One run of a script for some tasks. first is the position of the first of these tasks in the caller's list."""

    script: str
    keys: list[str]
    args: list[Any]
    ids: list[str]
    first: int = 0

    def ids_of(self, reply: Any) -> list[str]:
        """Returns the ids of the tasks, or of the existing tasks that took their place.

        Raises DuplicateError if Redis refused a task.
        """
        if self.script == 'schedule' and reply[0] == 0:
            position: int = reply[1]
            raise self._duplicate(position, self.ids[position])
        if self.script != 'enlist':
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


_MAX_WAIT = 2**31 - 1  # the most that every Redis accepts


def checked_wait(wait: int) -> int:
    """Returns wait, the number of replicas that must have a task, after checking it."""
    if not isinstance(wait, int) or isinstance(wait, bool) or not 0 <= wait <= _MAX_WAIT:
        raise ArgumentsError(f'wait: expected the number of replicas that must have a task, from 0, found {wait!r}')
    return wait


class Settings:
    """The settings of a queue, without its connection."""

    def __init__(self, name: str, prefix: str, legacy: bool) -> None:
        if legacy and prefix:
            raise ArgumentsError('a legacy queue has no prefix: legacy workers do not know it')
        if not is_text(prefix):
            raise ArgumentsError(f'prefix {prefix!r}: expected a str in Unicode')
        self.name = name
        self.prefix = prefix
        self.keys = Keys(name, prefix)
        self.legacy = legacy
        self._settled = 0.0  # when Redis last confirmed the form of Python tasks, on the monotonic clock; 0 if never

    @property
    def form(self) -> str:
        """The form of Python tasks, as Redis records it."""
        return 'plain' if self.legacy else 'extended'

    def loose(self, c: Call) -> bool:
        """Returns whether the message of a call carries no id."""
        return self.legacy and c.python

    @property
    def settled(self) -> bool:
        """Whether Redis has confirmed within the last second that the queue has our form of Python tasks."""
        return self._settled > 0 and time.monotonic() - self._settled < _SETTLE_LIFE

    async def settle(self, link: Link) -> None:
        """Makes sure that Python tasks of the queue have the form for which this handle was opened."""
        k, now = self.keys, time.monotonic()
        form = _text(await link.run('mode', [k.mode], [self.form]))
        if form != self.form and await self._holds_none(link):
            keys = [k.mode, k.list, k.scheduled, k.retry, k.parked, k.archived, k.legacy, k.periodic, k.suspects]
            form = _text(await link.run('reform', keys, [form, self.form]))
        if form != self.form:
            raise DelayedError(
                f'queue {self.name!r} may hold {form} Python tasks, but was opened for {self.form} ones: '
                f'open it with legacy={form == "plain"}, or wait until it holds no task, archived ones and periodic '
                'entries included'
            )
        self._settled = now

    async def _holds_none(self, link: Link) -> bool:
        """Returns whether no task is pending and none is active.

        It looks at pending tasks first, then at active ones. A task that becomes active in between was still pending at
        the first look.
        """
        k = self.keys
        if await link.send('LLEN', k.list) or await link.send('LLEN', k.suspects):
            return False
        for worker in await link.send('SMEMBERS', k.workers):
            if await link.send('HLEN', k.processing + _text(worker)):
                return False
        return True

    def messages(self, calls: Sequence[Call], options: Options) -> tuple[list[Packed], int]:
        """Returns the messages of calls, and the time that they contain, in ms. Raises ArgumentsError for a faulty
        call."""
        if options.task_id is not None and len(calls) > 1:
            raise ArgumentsError(f'option task_id with {len(calls)} tasks: an id names one task')
        now = time.time_ns() // 1_000_000
        for i, c in enumerate(calls, 1):
            if not isinstance(c, Call):
                raise ArgumentsError(
                    f'call {i}: expected what godelayed.call() returns, found {type(c).__module__}.{type(c).__name__}'
                )
        stamp = Stamp(options, now, legacy=self.legacy)
        if len(calls) == 1:
            return [stamp.packed(calls[0])], now
        messages: list[Any] = []
        for i, c in enumerate(calls):
            try:
                messages.append(stamp.packed(c))
            except ArgumentsError as e:
                raise type(e)(f'call {i + 1}: {e}') from None
        return messages, now

    def plain(self, options: Options) -> bool:
        """Returns whether tasks with these options only become pending, so that the coalescer may send them with
        others."""
        return options.place[0] == 'back' and options.group is None and not options.locked and options.task_id is None

    def commands(self, messages: Sequence[Packed], options: Options) -> Iterator[Command]:
        """Yields the commands that enqueue messages, in order."""
        enlists = options.locked or options.task_id is not None or options.front
        gathers = options.group is not None and options.place[0] == 'back'
        filed = gathers or options.place[0] not in ('back', 'front')
        most = MAX_ENLISTED if enlists else MAX_FILED if filed else MAX_BATCH
        first = 0
        while first < len(messages):
            size = n = 0
            groups: set[str] = set()
            for m in messages[first : first + most]:
                size += len(m.message)
                if gathers:
                    groups.add(m.group)
                if n and (size > MAX_CALL_BYTES or n + GROUP_COST * (len(groups) - 1) >= most):
                    break
                n += 1
            if options.front and n < len(messages):
                raise ArgumentsError(f'option front with {len(messages)} tasks: {n} go to the front together')
            batch = messages[first : first + n]
            script, keys, args = (
                self._gather(batch, options)
                if gathers
                else self._enlist(batch, options)
                if enlists
                else self._file(batch, options)
            )
            yield Command(script, keys, args, [m.id for m in batch], first)
            first += n

    def enqueue(self, messages: Sequence[bytes]) -> tuple[str, list[str], list[Any]]:
        """Returns the script that makes messages pending, with its keys and arguments."""
        return 'enqueue', [self.keys.list, self.keys.noti], list(messages)

    def _file(self, batch: Sequence[Packed], options: Options) -> tuple[str, list[str], list[Any]]:
        k = self.keys
        how, due = options.place
        if how == 'back':
            return self.enqueue([m.message for m in batch])
        args: list[Any] = []
        for m in batch:
            args += [_due(how, due), m.id, m.message]
        return 'schedule', [k.scheduled, k.tasks, k.wake], args

    def _enlist(self, batch: Sequence[Packed], options: Options) -> tuple[str, list[str], list[Any]]:
        k = self.keys
        keys = [
            k.list, k.noti, k.scheduled, k.retry, k.parked, k.tasks, k.info, k.completed, k.locks, k.revoked,
            k.wake, k.control,
        ]  # fmt: skip
        life = options.life if options.locked else 0
        reserve = max(LOCK_LIFE, life) if options.task_id is not None else 0
        args: list[Any] = [k.signals, LOCK_LIFE]
        for m in batch:
            args += [m.id, m.message, reserve, m.lock, life, options.conflict, _due(*options.place)]
        return 'enlist', keys, args

    def _gather(self, batch: Sequence[Packed], options: Options) -> tuple[str, list[str], list[Any]]:
        k = self.keys
        groups: dict[str, int] = {}
        keys: list[str] = []
        grace, delay, size = options.gather
        args: list[Any] = [_GROUP_BYTES, _GROUP_VALUES]
        for m in batch:
            if m.group not in groups:
                groups[m.group] = len(groups) + 1
                keys += [k.group + m.group, k.groups, k.gathered, k.wake]
            args += [groups[m.group], m.group, grace, f'{delay} {size}', m.size, m.values, m.message]
        return 'gather', keys, args


def _due(how: str, due: int) -> str:
    """Returns where a task goes, as scripts take it."""
    return f'+{due}' if how == 'in' else str(due) if how == 'at' else how


class Sent(NamedTuple):
    """What a reference needs to know about a task that was enqueued."""

    id: str
    options: Options
    made: int  # ms since 1970
    loose: bool  # the message carries no id


class Producer:
    """A queue, whatever its client. wait is how many replicas must have a task, check whether calls are compared with
    what workers publish."""

    _coalescer: Any

    def __init__(self, name: str, link: Link, legacy: bool, prefix: str, wait: int, check: bool) -> None:
        self._settings = Settings(name, prefix, legacy)
        check_tag(link.client, self._settings.keys)
        self._wait = checked_wait(wait)
        self._published = Published(self._settings.keys) if check else None
        self._link = link
        self._options = Options()

    @property
    def name(self) -> str:
        """The name, without the prefix."""
        return self._settings.name

    def __repr__(self) -> str:
        return f'Queue({self.name!r})'

    def options(self: Q, **options: Unpack[OptionValues]) -> Q:
        """Returns a queue whose calls have these options, in addition to its own. README.md lists them in a table.

        An invalid value raises ArgumentsError at once. None removes an option.
        """
        q = copy.copy(self)
        q._options = self._options.merged(**options)
        return q

    async def _delay(self, c: Call) -> Sent:
        if not enqueues:
            return await self._delay_one(c)
        with self._surrounded((c,)) as (queue, e):
            sent = await queue._delay_one(c)
            e.ids.append('' if sent.loose else sent.id)
            return sent
        raise _swallowed()

    async def _delay_many(self, calls: Iterable[Call]) -> list[Sent]:
        calls = list(calls)
        if not calls:
            return []
        with self._surrounded(calls) as (queue, e):
            sent = await queue._delay_all(calls)
            e.ids += ['' if one.loose else one.id for one in sent]
            return sent
        raise _swallowed()

    @contextlib.contextmanager
    def _surrounded(self: Q, calls: Sequence[Call]) -> Generator[tuple[Q, Enqueuing]]:
        """Calls middleware, and yields the queue with the headers that it has added."""
        e = Enqueuing(self.name, calls)
        with surround(enqueues, e):
            queue = self
            if e.headers and not any(map(self._settings.loose, calls)):
                queue = self.options(headers={**e.headers, **(self._options.headers or {})})
            yield queue, e

    async def _delay_one(self, c: Call) -> Sent:
        s, options, link = self._settings, self._options, self._link
        messages, now = s.messages((c,), options)
        if self._published:
            await self._published.check(link, (c,))
        if not s.settled and c.python:
            await s.settle(link)
        id = messages[0].id
        if s.plain(options):
            await link.do(self._coalescer.enqueue(messages[0].message))
        else:
            for command in s.commands(messages, options):
                id = command.ids_of(await link.run(command.script, command.keys, command.args, self._wait))[0]
        await self._announce()
        return Sent(id, options, now, s.loose(c))

    async def _delay_all(self, calls: Sequence[Call]) -> list[Sent]:
        s, options, link = self._settings, self._options, self._link
        messages, now = s.messages(calls, options)
        if self._published:
            await self._published.check(link, calls)
        if not s.settled and any(c.python for c in calls):
            await s.settle(link)
        sent: list[Sent] = []
        for command in s.commands(messages, options):
            try:
                ids = command.ids_of(await link.run(command.script, command.keys, command.args, self._wait))
            except DelayedError as e:
                if len(command.ids) == len(calls):
                    raise
                raise BatchError(f'{len(sent)} of {len(calls)} tasks were enqueued: {e}', len(sent)) from e
            sent += [Sent(id, options, now, s.loose(c)) for id, c in zip(ids, calls[command.first :])]
        await self._announce()
        return sent

    async def _length(self) -> int:
        k = self._settings.keys
        return int(await self._link.send('LLEN', k.list)) + int(await self._link.send('LLEN', k.suspects))

    async def _announce(self) -> None:
        """Makes the queue known to inspectors. Nothing depends on it, so it fails in silence."""
        s, announced = self._settings, self._link.announced
        ask = announced.ask(s.prefix, s.name, s.legacy)
        if ask is None:
            return
        try:
            await self._link.run(*ask)
        except DelayedError as e:
            announced.refused(s.prefix, s.name, s.legacy, e)

    async def _enqueue(self, messages: list[bytes]) -> None:
        await self._link.run(*self._settings.enqueue(messages), self._wait)


def _swallowed() -> DelayedError:
    return DelayedError('middleware of around_enqueue has swallowed an error: expected that it is raised again')


def checked_id(id: str) -> str:
    """Returns an id after checking that it is text."""
    if not is_text(id):
        raise ArgumentsError(f'id {id!r}: expected a str in Unicode')
    return id
