"""Periodic entries of a queue at run time: tasks that are enqueued again and again. docs/PERIODIC.md describes them."""

from __future__ import annotations

import dataclasses
import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from .calls import Call
from .errors import ArgumentsError, DelayedError
from .link import Blocking, run
from .options import Options
from .times import Seconds, from_milliseconds, milliseconds, moment
from .timetable import RUN_TWICE, SKIP_GAP, Timetable
from .worker.agenda import Agenda
from .worker.entries import OVERLAPS, Definition, Record, template

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from .aio.ref import Ref as AsyncRef
    from .ref import Ref


class When(TypedDict, total=False):
    """What says when an entry ticks, besides its spec.

    zone is the time zone of the fields, such as Europe/Berlin; UTC unless given. catch_up is how many missed ticks are
    enqueued late, the latest ones, up to 100; 1 unless given, negative: none. overlap says what happens to a tick while
    the previous task has not ended: 'allow', 'skip', or 'queue', which lets one tick wait. jitter delays each tick by
    up to so much, at most an hour. from_ and until are the first moment at which the entry may tick, and the one from
    which on it does not. skip_clock_gap leaves out ticks at times that clocks leave out; repeat_clock_overlap runs
    those at times that clocks show twice both times.
    """

    zone: str
    catch_up: int
    overlap: Literal['allow', 'skip', 'queue']
    jitter: Seconds
    from_: datetime.datetime | None
    until: datetime.datetime | None
    skip_clock_gap: bool
    repeat_clock_overlap: bool


_WHEN = frozenset(When.__annotations__)


def defined(name: str, spec: str, call: Call | None, options: Options, legacy: bool, when: When) -> Definition:
    """Returns the definition of an entry, after checking it. Without a call it has no message."""
    for key in when:
        if key not in _WHEN:
            raise ArgumentsError(f'periodic entry {name!r}: unknown argument {key!r}: expected one of {sorted(_WHEN)}')
    overlap, catch_up = when.get('overlap', 'allow'), when.get('catch_up', 1)
    if type(catch_up) is not int:
        raise ArgumentsError(f'periodic entry {name!r}: catch_up is {catch_up!r}: expected an int')
    if overlap not in OVERLAPS:
        raise ArgumentsError(f'periodic entry {name!r}: overlap is {overlap!r}: expected one of {", ".join(OVERLAPS)}')
    start, until = when.get('from_'), when.get('until')
    d = Definition(
        spec=spec.strip(),
        zone=when.get('zone', ''),
        dst=SKIP_GAP * bool(when.get('skip_clock_gap')) + RUN_TWICE * bool(when.get('repeat_clock_overlap')),
        missed=max(catch_up, -1) or 1,
        overlap=OVERLAPS.index(overlap),
        jitter=milliseconds(when.get('jitter', 0), 'jitter'),
        start=None if start is None else moment(start, 'from_'),
        until=None if until is None else moment(until, 'until'),
    )
    d.check(name)
    if call is None and options != Options():
        raise ArgumentsError(f'periodic entry {name!r}: it has options but no call: they belong to one')
    if call is not None:
        try:
            d.message, d.relative = template(call, options, legacy, d.overlap)
        except ArgumentsError as e:
            raise type(e)(f'periodic entry {name!r}: {e}') from None
    return d


@dataclasses.dataclass(frozen=True)
class Entry:
    """A periodic entry, as list returns it. Times are in the entry's zone.

    function is the path of what its tasks call. owner is who declares it in code, '' if it was set at run time. next is
    the next tick, without jitter, None while the entry is paused; previous the last one that was enqueued or left out.
    waiting: a tick waits for the end of the previous task. jitter is in seconds.
    """

    name: str
    spec: str
    zone: str
    function: str
    skip_clock_gap: bool
    repeat_clock_overlap: bool
    catch_up: int
    overlap: str
    jitter: float
    from_: datetime.datetime | None
    until: datetime.datetime | None
    owner: str
    paused: bool
    next: datetime.datetime | None
    previous: datetime.datetime | None
    waiting: bool
    _table: Timetable | None = dataclasses.field(repr=False, compare=False)

    def ticks(self, n: int) -> list[datetime.datetime]:
        """Returns the next n ticks, or fewer if the entry ends or this machine does not know its zone."""
        found: list[datetime.datetime] = []
        at = self.next
        while at is not None and len(found) < n:
            found.append(at)
            after = None if self._table is None else self._table.next(moment(at, 'tick'))
            at = _shown(after, at.tzinfo)
        return found


class Run(NamedTuple):
    """A line of an entry's history: what became of a tick.

    skipped is '' if the tick was enqueued; 'missed' if this tick and all ticks back to that of the next, older line
    were missed; 'overlap' if it was left out because the previous task was not over; 'queued' if it waits for that.
    """

    tick: datetime.datetime | None
    at: datetime.datetime | None
    id: str
    skipped: str


class Base:
    """The periodic entries of a queue, whatever its client."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._agenda = Agenda(queue._settings, queue._link)

    async def _set(self, name: str, spec: str, call: Call | None = None, **when: Unpack[When]) -> None:
        """Creates an entry, or changes the one of that name: a new spec, zone or bound holds from now on.

        call is what godelayed.call or the call of a task returns; None keeps that of the entry. spec has five fields,
        as in '30 7 * * mon-fri', or is @hourly, @daily, @weekly, @monthly, @yearly, or @every and a duration, as in
        '@every 90s'. When says what the other arguments mean. The options of the queue hold for the tasks. A paused
        entry stays paused. If code declares the entry, the change holds until the declaration changes.
        """
        settings = self._agenda.settings
        new = defined(name, spec, call, self._queue._options, settings.legacy, when)
        if call is not None and call.python:
            await settings.settle(self._agenda.link)

        def edit(r: Record, now: int) -> None:
            if call is None and not r.raw:
                raise ArgumentsError(f'periodic entry {name!r} is new: expected a call')
            if call is None:
                new.message, new.relative = r.definition.message, r.definition.relative
            r.define(new, now)

        await self._agenda.change(name, edit, create=True)
        await self._queue._announce()

    async def _remove(self, name: str) -> None:
        """Removes an entry and its history. If code declares it, the next worker brings it back: pause it instead."""
        await self._agenda.remove(name)

    async def _pause(self, name: str) -> None:
        """Makes an entry tick no more until resume, beyond restarts and changes of its declaration too."""
        await self._agenda.change(name, lambda r, _: r.pause())

    async def _resume(self, name: str) -> None:
        """Ends a pause. Ticks of the meantime are not enqueued."""
        await self._agenda.change(name, lambda r, now: r.resume(now))

    async def _list(self) -> list[Entry]:
        """Returns the entries by name. A DelayedError names those that this version cannot read."""
        return sorted((_entry(*found) for found in await self._agenda.everything()), key=lambda e: e.name)

    async def _history(self, name: str) -> list[Run]:
        """Returns what became of the last ticks of an entry, at most 100, the latest first."""
        return [_run(line) for line in await self._agenda.history(name)]


class Periodic(Base):
    """The periodic entries of a queue. Any program may change them; schedulers notice changes at once.

    Errors, besides those of Queue.delay: NoEntryError; DelayedError if an entry cannot be read. Threads may share it.
    """

    set = Blocking(Base._set)
    remove = Blocking(Base._remove)
    pause = Blocking(Base._pause)
    resume = Blocking(Base._resume)
    list = Blocking(Base._list)
    history = Blocking(Base._history)

    def run_now(self, name: str) -> Ref[Any]:
        """Enqueues an entry's task now, and leaves its ticks as they are. DuplicateError: its previous task is not
        over, and overlap is not 'allow'."""
        ref: Ref[Any] = self._queue.ref(run(self._agenda.run(name)))
        return ref


class AsyncPeriodic(Base):
    """Periodic for asyncio: its methods do the same and are awaited."""

    set = Base._set
    remove = Base._remove
    pause = Base._pause
    resume = Base._resume
    list = Base._list
    history = Base._history

    async def run_now(self, name: str) -> AsyncRef[Any]:
        """Enqueues an entry's task now, and leaves its ticks as they are."""
        ref: AsyncRef[Any] = self._queue.ref(await self._agenda.run(name))
        return ref


def _shown(ms: int | None, zone: datetime.tzinfo | None) -> datetime.datetime | None:
    at = None if ms is None else from_milliseconds(ms)
    return at if at is None or zone is None else at.astimezone(zone)


def _entry(name: str, raw: bytes) -> Entry:
    r = Record(name, raw)
    d = r.definition
    table = zone = None
    try:
        table = r.timetable()
        zone = table.zone
    except DelayedError:  # this machine does not know the zone
        pass
    return Entry(
        name=name,
        spec=d.spec,
        zone=d.zone,
        function=d.path(),
        skip_clock_gap=bool(d.dst & SKIP_GAP),
        repeat_clock_overlap=bool(d.dst & RUN_TWICE),
        catch_up=d.missed,
        overlap=OVERLAPS[d.overlap],
        jitter=d.jitter / 1000,
        from_=_shown(d.start, zone),
        until=_shown(d.until, zone),
        owner=r.owner,
        paused=r.paused,
        next=None if r.paused else _shown(r.next, zone),
        previous=_shown(r.prev, zone),
        waiting=r.queued is not None,
        _table=table,
    )


def _run(line: str) -> Run:
    tick, at, what, id = line.split(' ', 3)
    return Run(from_milliseconds(int(tick)), from_milliseconds(int(at)), id, '' if what == 'enqueued' else what)
