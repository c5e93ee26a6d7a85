"""Periodic entries as Redis holds them, and what their ticks change. docs/PROTOCOL.md describes the bytes, and
docs/PERIODIC.md what an entry does. Times are in ms since 1970; None stands for none."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import msgpack

from ..calls import Call, Stamp
from ..errors import ArgumentsError, DelayedError
from ..kinds import is_dict, is_list
from ..options import Options
from ..timetable import MAX_TICKS, Timetable
from ..values import unpack
from .message import Message, MessageError

OVERLAPS = ('allow', 'skip', 'queue')
LOCK_LIFE = 24 * 3600 * 1000  # ms for which the lock between runs of an entry lasts if nobody frees it
_ON_TIME = 30_000  # ms by which a tick may be late before it counts as missed
_SHORTEST = 1000  # ms, of @every
_MOST_JITTER = 3600 * 1000  # ms
_MOST_NAME = 128  # bytes
_MOST_MS = 253_402_300_800_000  # the end of the year 9999
_TIMES = {'xp': 1, 'dl': 2, 'ru': 4}  # times of a message that may count from the tick, with their bits of relative
_SPEC = 'the spec says when a task runs; leave it out, or use jitter'
_OVERLAP = 'what keeps runs of an entry apart is its overlap; leave it out'
_MOMENT = 'one moment cannot hold for all ticks; use ttl, timeout or retry'
_REFUSED = {
    **dict.fromkeys(('countdown', 'eta', 'debounce'), _SPEC),
    **dict.fromkeys(('unique', 'unique_key'), _OVERLAP),
    **dict.fromkeys(('deadline', 'retry_until'), _MOMENT),
    'task_id': 'each tick has an id of its own, name@tick; leave it out',
    'front': 'ticks join the end of the queue; leave it out',
    'group': 'ticks are not gathered; leave it out',
}


@dataclasses.dataclass
class Definition:
    """The part of an entry that its author sets: when it ticks, and what is enqueued then.

    missed is how many missed ticks are enqueued, -1 for none; overlap an index of OVERLAPS; message has neither id nor
    time; relative says which of its times count from the tick.
    """

    spec: str
    zone: str = ''
    dst: int = 0
    missed: int = 1
    overlap: int = 0
    jitter: int = 0
    start: int | None = None
    until: int | None = None
    relative: int = 0
    message: bytes = b''

    def check(self, name: str) -> None:
        """Raises ArgumentsError if an entry of that name cannot have the definition."""
        if not isinstance(name, str) or not name.isprintable() or any(c.isspace() for c in name) or name[:1] in '@':
            raise ArgumentsError(
                f'periodic entry {name!r}: expected a name of printable characters without spaces, not beginning with @'
            )
        if len(name.encode()) > _MOST_NAME:
            raise ArgumentsError(f'periodic entry {name!r}: expected a name of at most {_MOST_NAME} bytes')
        try:
            if not -1 <= self.missed <= MAX_TICKS or not self.missed:
                raise ArgumentsError(f'catch_up is {self.missed}: expected 1 to {MAX_TICKS}, or a negative number')
            if not 0 <= self.jitter <= _MOST_JITTER:
                raise ArgumentsError(f'jitter is {self.jitter} ms: expected 0 to {_MOST_JITTER}')
            if not 0 <= (self.start or 0) < _MOST_MS or not 0 < (self.until or 1) < _MOST_MS:
                raise ArgumentsError('from_ and until: expected times from 1970 up to the year 9999')
            if self.start is not None and self.until is not None and self.start >= self.until:
                raise ArgumentsError('until: expected a time after from_')
            if 0 < self.timetable(name).every < _SHORTEST:
                raise ArgumentsError(f'the spec {self.spec!r}: expected at least 1s after @every')
        except ArgumentsError as e:
            raise ArgumentsError(f'periodic entry {name!r}: {e}') from None

    def timetable(self, name: str) -> Timetable:
        """Returns when an entry of that name ticks."""
        return Timetable(self.spec, self.zone, self.dst, self.start, self.until, self.jitter, name)

    def ticks_as(self, other: Definition) -> bool:
        """Returns whether both tick at the same times."""
        return dataclasses.replace(self, missed=1, overlap=0, relative=0, message=b'') == dataclasses.replace(
            other, missed=1, overlap=0, relative=0, message=b''
        )

    def encode(self) -> bytes:
        """Returns the definition as Redis holds it: the same bytes as Go's."""
        fields: dict[str, Any] = {'spec': self.spec}
        for key, value, default in (
            ('zone', self.zone, ''),
            ('dst', self.dst, 0),
            ('missed', self.missed, 1),
            ('overlap', self.overlap, 0),
            ('jitter', self.jitter, 0),
            ('from', self.start, None),
            ('until', self.until, None),
            ('relative', self.relative, 0),
        ):
            if value != default:
                fields[key] = value
        packed: bytes = msgpack.packb({**fields, 'task': self.message}, use_bin_type=True)
        return packed

    def task_at(self, id: str, lock: str, now: int) -> bytes:
        """Returns the message of one task of the entry. A Python task of a legacy queue carries no id."""
        m = Message(self.message)
        if m.python and not m.extended:
            return self.message
        changes: dict[str, Any] = {'id': id, 'at': now}
        for key, bit in _TIMES.items():
            if self.relative & bit:
                changes[key] = m.meta.get(key, 0) + now
        return m.with_meta(**changes, **({'uk': lock, 'ul': LOCK_LIFE} if lock else {}))

    def path(self) -> str:
        """Returns the path of the entry's function, '' if its message cannot be read."""
        try:
            return Message(self.message).path
        except MessageError:
            return ''


def template(call: Call, options: Options, legacy: bool, overlap: int) -> tuple[bytes, int]:
    """Returns the message of an entry's tasks, and which of its times count from the tick."""
    for name, why in _REFUSED.items():
        if getattr(options, name):
            raise ArgumentsError(f'option {name}: {why}')
    m = Message(Stamp(options, 0, legacy=legacy).packed(call).message)
    if m.python and not m.extended:
        if overlap:
            raise ArgumentsError(
                f'{call.path}: a Python task of a legacy queue carries no id, so that nobody knows when it is over: '
                'leave out overlap'
            )
        return m.raw, 0
    return m.with_meta(id='', at=0), int('xp' in m.meta)


class Record:
    """A periodic entry: its definition and its state. raw is what was read, b'' for a new entry.

    prev and next are the last tick that was dealt with and the next one; queued is the tick that waits for the end of
    the previous task. A change of the state keeps the bytes of the definition, which a newer version may have written.
    """

    def __init__(self, name: str, raw: bytes = b'') -> None:
        self.name, self.raw = name, raw
        self.definition = Definition('')
        self._definition_raw, self._declared = b'', b''
        self.owner, self.paused = '', False
        self.prev: int | None = None
        self.next: int | None = None
        self.queued: int | None = None
        if raw:
            try:
                self._read(raw)
            except Exception as e:  # msgpack raises errors of many kinds
                raise DelayedError(
                    f'periodic entry {name!r} cannot be read; a newer version may have written it: {e}'
                ) from None

    def _read(self, raw: bytes) -> None:
        parts = unpack(raw)
        if not is_list(parts) or len(parts) != 2 or not isinstance(parts[0], bytes):
            raise ValueError('expected a definition and a map')
        self._definition_raw = parts[0]
        state, made = _Fields(parts[1]), _Fields(unpack(parts[0]))
        self.owner, self._declared = state.get('owner', str, ''), state.get('declared', bytes, b'')
        self.paused = state.get('paused', bool, False)
        self.prev, self.next, self.queued = (state.number(key, 0, 1 << 53) for key in ('prev', 'next', 'queued'))
        self.definition = Definition(
            spec=made.get('spec', str, ''),
            zone=made.get('zone', str, ''),
            dst=made.number('dst', 0, 3) or 0,
            missed=made.number('missed', -1, MAX_TICKS) or 1,
            overlap=made.number('overlap', 0, 2) or 0,
            jitter=made.number('jitter', 0, _MOST_JITTER) or 0,
            start=made.number('from', 0, 1 << 53),
            until=made.number('until', 0, 1 << 53),
            relative=made.number('relative', 0, 1 << 16) or 0,
            message=made.get('task', bytes, b''),
        )

    def encode(self) -> bytes:
        """Returns the record as Redis holds it."""
        state: dict[str, Any] = {'owner': self.owner, 'declared': self._declared} if self.owner else {}
        if self.paused:
            state['paused'] = True
        times = {'prev': self.prev, 'next': self.next, 'queued': self.queued}
        state |= {key: at for key, at in times.items() if at is not None}
        packed: bytes = msgpack.packb([self._definition_raw, state], use_bin_type=True)
        return packed

    def define(self, definition: Definition, now: int) -> None:
        """Gives the entry another definition. A change of when it ticks holds from now on."""
        again = not self._definition_raw or not self.definition.ticks_as(definition)
        self.definition, self._definition_raw = definition, definition.encode()
        if again:
            self._restart(now)
        if definition.overlap != 2:
            self.queued = None

    def declare(self, owner: str, definition: Definition, now: int) -> None:
        """Gives the entry the definition that the code of its owner declares, unless that is the one declared last:
        then changes made since then stay."""
        digest = hashlib.sha256(definition.encode()).digest()[:8]
        if (self.owner, self._declared) != (owner, digest):
            self.owner, self._declared = owner, digest
            self.define(definition, now)

    def pause(self) -> None:
        """Stops the ticks, and drops a tick that waits."""
        self.paused, self.queued = True, None

    def resume(self, now: int) -> None:
        """Ends a pause."""
        if self.paused:
            self.paused = False
            self._restart(now)

    def _restart(self, now: int) -> None:
        self.prev, self.next, self.queued = now, self.timetable().next(now), None

    def timetable(self) -> Timetable:
        """Returns when the entry ticks."""
        return self.definition.timetable(self.name)

    def due(self, t: Timetable) -> int | None:
        """Returns when a scheduler must look at the entry next."""
        if self.paused:
            return None
        # A tick that waits is in the past, so that every look finds it until the previous task has ended.
        return self.queued if self.queued is not None else None if self.next is None else t.due(self.next)

    def unchanged(self, due: int | None) -> Plan:
        """Returns a plan without ticks that leaves the entry as it is."""
        lock = f'p:{self.name}' if self.definition.overlap else ''
        return Plan(self.name, self.raw, self.raw, self.raw, due, due, 0, lock, [])

    def run(self, id: str, now: int) -> Plan:
        """Returns the plan for enqueueing the entry's task now, beside its ticks."""
        p = self.unchanged(self.due(self.timetable()))
        p.ticks.append(Tick(now, id, self.definition.task_at(id, p.lock, now), 'enqueued', ''))
        return p

    def plan(self, now: int) -> Plan:
        """Returns the plan for the ticks that are due. A plan without ticks says when to look at the entry again."""
        t = self.timetable()
        p = self.unchanged(None)
        if self.paused:
            return p  # it should not be in the set of ticks
        ticks, missed, seen = self._overdue(t, now)
        if missed is not None:
            p.ticks.append(Tick(missed, '', b'', 'missed', 'missed'))
        waits, queues = self.queued is not None, self.definition.overlap == 2
        if self.queued is not None:
            ticks = [self.queued, *ticks]
        for i, at in enumerate(ticks):
            free, held = 'enqueued', 'overlap'
            if not p.lock or i == 0 and waits:
                held = ''
            elif i == 0 and queues:
                held = 'queued'
            elif i > 0:
                free = 'queued' if i == 1 and queues else 'overlap'
            id = tick_id(self.name, at)
            message = self.definition.task_at(id, p.lock, now) if free == 'enqueued' else b''
            p.ticks.append(Tick(at, id, message, free, held))
            if i > 0 or not waits:
                p.not_before = max(p.not_before, t.due(at))
        before = self.prev, self.next, self.queued
        self.prev, self.next = seen, t.next(seen)
        self.queued = ticks[1] if queues and len(ticks) > 1 else None
        p.free, p.due_free = self.encode(), self.due(t)
        self.queued = ticks[0] if queues and ticks else None
        p.held, p.due_held = self.encode(), self.due(t)
        self.prev, self.next, self.queued = before
        return p

    def _overdue(self, t: Timetable, now: int) -> tuple[list[int], int | None, int]:
        """Returns the ticks to enqueue now; the first one to skip because it was missed; and the one up to which all
        are dealt with then."""
        prev = self.prev or 0
        first = t.next(prev)
        if first is None or t.due(first) > now:
            return [], None, prev
        if now - t.due(first) <= _ON_TIME:
            ticks, tick = [first], t.next(first)
            while len(ticks) < MAX_TICKS and tick is not None and t.due(tick) <= now:
                ticks.append(tick)
                tick = t.next(tick)
            return ticks, None, ticks[-1]
        # No scheduler was running for a while. A tick may still wait for its jitter, and those after it wait with it.
        up_to = now
        tick = t.next(max(now - self.definition.jitter - 1, prev)) if self.definition.jitter else None
        while tick is not None and tick <= now:
            if t.due(tick) > now:
                up_to = tick - 1
                break
            tick = t.next(tick)
        ticks = t.last(prev, up_to, max(self.definition.missed, 1))
        seen = ticks[-1]  # first is one of those
        if self.definition.missed < 0 and now - t.due(seen) > _ON_TIME:
            return [], first, seen
        return ticks, first if ticks[0] > first else None, seen


@dataclasses.dataclass
class Tick:
    """One tick with its outcomes, which depend on the lock: free if it is free, held if another task has it."""

    at: int
    id: str
    message: bytes
    free: str
    held: str


@dataclasses.dataclass
class Plan:
    """One change of an entry by its ticks, for the script tick. It fails before not_before, by Redis's clock."""

    name: str
    was: bytes
    free: bytes
    held: bytes
    due_free: int | None
    due_held: int | None
    not_before: int
    lock: str
    ticks: list[Tick]


def tick_id(name: str, at: int) -> str:
    """Returns the id of the task of a tick."""
    return f'{name}@{at}'


class _Fields:
    """The values of a map that must have certain types."""

    def __init__(self, values: Any) -> None:
        self._values: Mapping[Any, Any] = values if is_dict(values) else {}

    def get(self, key: str, kind: type[Any], default: Any) -> Any:
        v = self._values.get(key)
        if v is not None and type(v) is not kind:
            raise ValueError(f'{key!r}: expected {kind.__name__}, found {type(v).__name__}')
        return default if v is None else v

    def number(self, key: str, lowest: int, highest: int) -> int | None:
        v: int | None = self.get(key, int, None)
        if v is not None and not lowest <= v <= highest:
            raise ValueError(f'{key!r}: expected {lowest} to {highest}, found {v}')
        return v
