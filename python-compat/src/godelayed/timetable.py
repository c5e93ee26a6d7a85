"""When a periodic entry ticks: the specs, zones and rules for changes of clocks of Go's schedulers, with the same
results. Times are in ms since 1970, or, where clocks matter, in seconds; a time that a clock shows is written as if in
UTC. None stands for never."""

from __future__ import annotations

import bisect
import datetime
import functools
import re
import zoneinfo
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from .errors import ArgumentsError

MAX_TICKS = 100
SKIP_GAP, RUN_TWICE = 1, 2  # bits of Timetable.dst

_HOUR, _DAY = 3600, 86400
_EPOCH = datetime.datetime(1970, 1, 1)
_MONTHS = ('jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec')
_DAYS = ('sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat')
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, dict(zip(_MONTHS, range(1, 13)))),
    (0, 6, dict(zip(_DAYS, range(7)))),
)
_NAMED = {
    '@yearly': '0 0 1 1 *',
    '@annually': '0 0 1 1 *',
    '@monthly': '0 0 1 * *',
    '@weekly': '0 0 * * 0',
    '@daily': '0 0 * * *',
    '@midnight': '0 0 * * *',
    '@hourly': '0 * * * *',
}
_UNITS = {'ns': 1, 'us': 10**3, 'µs': 10**3, 'μs': 10**3, 'ms': 10**6, 's': 10**9, 'm': 60 * 10**9, 'h': 3600 * 10**9}
_PART = re.compile(r'([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)')


class Change(NamedTuple):
    """A moment at which a zone's clocks change: when, and their offsets from UTC before and after it, in seconds."""

    at: int
    before: int
    after: int


def load_zone(name: str) -> datetime.tzinfo | None:
    """Loads a zone by its name; '' is UTC, for which it returns None."""
    if name == 'Local':
        raise ArgumentsError('the zone Local differs between machines: name one, such as Europe/Berlin')
    try:
        return zoneinfo.ZoneInfo(name) if name not in ('', 'UTC') else None
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise ArgumentsError(
            f'the zone {name!r} is not known on this machine: expected a name such as Europe/Berlin; install the '
            'package tzdata where the system has no zones'
        ) from None


def _offset(zone: datetime.tzinfo | None, at: int) -> int:
    if zone is None:
        return 0
    offset = datetime.datetime.fromtimestamp(at, zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


@functools.lru_cache(maxsize=512)
def _changes_in(zone: datetime.tzinfo, year: int) -> tuple[Change, ...]:
    """Finds the changes within a year of UTC. No zone changes twice within the step of this search."""
    step, found = 4 * _HOUR, list[Change]()
    at = _seconds(datetime.datetime(year, 1, 1)) - 1
    end = _seconds(datetime.datetime(year + 1, 1, 1)) - 1
    here = _offset(zone, at)
    while at < end:
        then = min(at + step, end)
        there = _offset(zone, then)
        if there != here:
            low, high = at, then
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == here else (low, middle)
            found.append(Change(high, here, there))
        at, here = then, there
    return tuple(found)


def _changes(zone: datetime.tzinfo | None, after: int, up_to: int) -> Iterator[Change]:
    """Yields the changes after one time and up to another."""
    if zone is None:
        return
    for year in range(_clock(after).year, _clock(up_to).year + 1):
        yield from (c for c in _changes_in(zone, year) if after < c.at <= up_to)


def _seconds(clock: datetime.datetime) -> int:
    return int((clock - _EPOCH).total_seconds())


def _clock(seconds: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(seconds=seconds)


class Timetable:
    """When an entry ticks, as a function of the entry alone, so that all processes agree on it.

    start: no tick comes before it; until: none from then on; jitter is the longest delay of a tick, in ms. name is the
    entry's, which the jitter depends on. ArgumentsError says what is wrong with spec or zone.
    """

    def __init__(
        self,
        spec: str,
        zone: str = '',
        dst: int = 0,
        start: int | None = None,
        until: int | None = None,
        jitter: int = 0,
        name: str = '',
    ) -> None:
        text = spec.strip()
        for prefix in ('CRON_TZ=', 'TZ='):
            if text.startswith(prefix):
                own, _, text = text[len(prefix) :].partition(' ')
                if zone not in ('', own):
                    raise ArgumentsError(
                        f'the spec {spec!r} names another zone than the entry, which says {zone!r}: leave one out'
                    )
                zone, text = own, text.strip()
                break
        self.zone = load_zone(zone)
        self._dst, self._start, self._until, self._jitter, self._name = dst, start, until, jitter, name
        self.every = _every(spec, text[7:].strip()) if text.startswith('@every ') else 0  # ms
        if not self.every:
            self._read(spec, _NAMED.get(text, text).split())

    def _read(self, spec: str, fields: list[str]) -> None:
        """Reads the five fields of a spec."""
        if len(fields) != 5:
            raise ArgumentsError(
                f'the spec {spec!r}: expected five fields, @hourly, @daily, @weekly, @monthly, @yearly or @every and a '
                f'duration'
            )
        try:
            read = [_field(text, *bounds) for text, bounds in zip(fields, _FIELDS)]
        except ValueError as e:
            raise ArgumentsError(f'the spec {spec!r}: {e}') from None
        (minutes, _), (hours, _), (self._days, any_day), (self._months, _), (self._weekdays, any_weekday) = read
        self._times = sorted(60 * h + m for h in hours for m in minutes)  # of a day, in minutes
        self._both = any_day or any_weekday  # whether day and weekday must be allowed, and not one of them
        # If every hour is allowed, ticks follow the clock, whatever it leaves out or repeats.
        self._free = len(hours) == 24
        if self._wall(0) is None:
            raise ArgumentsError(f'the spec {spec!r} never ticks: there is no such day')

    def next(self, after: int) -> int | None:
        """Returns the first tick after a time, without jitter."""
        if self._start is not None and after < self._start:
            after = self._start - 1
        if self.every:
            origin = self._start or 0
            tick: int | None = origin + ((after - origin) // self.every + 1) * self.every
        else:
            tick = self._cron(after // 1000)
        return None if tick is None or self._until is not None and tick >= self._until else tick

    def due(self, tick: int) -> int:
        """Returns when a tick is enqueued: later by up to the jitter, by the same time in all processes."""
        if not self._jitter:
            return tick
        # FNV-1a over name and tick, and the finish of MurmurHash3: ticks differ in few bits.
        most, h = 2**64 - 1, 14695981039346656037
        for b in (*self._name.encode('utf-8', 'surrogateescape'), tick & most):
            h = (h ^ b) * 1099511628211 & most
        h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & most
        h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & most
        return tick + (h ^ h >> 33) % (self._jitter + 1)

    def last(self, after: int, up_to: int, n: int) -> list[int]:
        """Returns the latest n ticks after one time and up to another, in their order."""
        if self._until is not None:
            up_to = min(up_to, self._until - 1)
        span = _HOUR * 1000
        while True:
            begin = max(up_to - span, after)
            ticks: list[int] = []
            tick = self.next(begin)
            while tick is not None and tick <= up_to:
                if self.every and not ticks:  # skip those before the last n in one step
                    tick += max((up_to - tick) // self.every - n + 1, 0) * self.every
                ticks = [*ticks[-n + 1 :], tick] if n > 1 else [tick]
                tick = self.next(tick)
            if begin == after or len(ticks) == n:
                return ticks
            span *= 4

    def _cron(self, after: int) -> int | None:
        """Returns the first tick of the fields after a time in seconds, in ms.

        It goes from one change of the clocks to the next, as far as the tick that the clocks would show.
        """
        try:
            # The change with which the time began in which a tick is looked for.
            begun = max(_changes(self.zone, after - 3 * _DAY, after), default=None)
            offset = _offset(self.zone, after)
            while True:
                tick = self._within(begun, offset, after)
                if tick is None:
                    return None
                begun = next(_changes(self.zone, max(after, begun.at if begun else after), tick), None)
                if begun is None:
                    return tick * 1000
                offset = begun.after
        except (OverflowError, ValueError):  # beyond the year 9999
            return None

    def _within(self, begun: Change | None, offset: int, after: int) -> int | None:
        """Returns the first tick after a time, in seconds, unless the clocks change before it."""
        shows = after + offset
        if begun is not None:
            opens = begun.at + begun.after
            # The latest time that the clock had shown before.
            shown = max(c.at + c.before for c in _changes(self.zone, begun.at - 2 * _DAY, begun.at))
            if begun.at > after:
                shows = opens - 1
                if shown < opens and not self._free and not self._dst & SKIP_GAP:
                    missed = self._wall(shown - 1)
                    if missed is not None and missed < opens:
                        return begun.at
            if shows < shown - 1 and not self._free and not self._dst & RUN_TWICE:
                shows = shown - 1
        wall = self._wall(shows)
        return None if wall is None else wall - offset

    def _wall(self, after: int) -> int | None:
        """Returns the first time after another one that the fields allow, both as a clock shows them."""
        first = _clock(after + 1)
        last = (first + datetime.timedelta(days=4 * 365)).year + 5  # as far as Go looks
        day, minute = first.date(), 60 * first.hour + first.minute + (first.second > 0)
        while day.year <= last:
            if day.month not in self._months:
                day, minute = (day.replace(day=1) + datetime.timedelta(days=31)).replace(day=1), 0
                continue
            i = bisect.bisect_left(self._times, minute)
            if i < len(self._times) and self._allows(day):
                return (day.toordinal() - _EPOCH.toordinal()) * _DAY + self._times[i] * 60
            day, minute = day + datetime.timedelta(days=1), 0
        return None

    def _allows(self, day: datetime.date) -> bool:
        found = day.day in self._days, day.isoweekday() % 7 in self._weekdays
        return all(found) if self._both else any(found)


def _field(text: str, lowest: int, highest: int, names: dict[str, int]) -> tuple[set[int], bool]:
    """Reads a field: the values that it allows, and whether it is a star that allows all of them."""
    values: set[int] = set()
    star = False
    for item in filter(None, text.split(',')):
        head, *step = item.split('/')
        first, *more = head.split('-')
        if len(step) > 1 or len(more) > 1 and first not in ('*', '?'):
            raise ValueError(f'{item!r} is no value, range or step')
        every = _number(step[0], {}) if step else 1
        if first in ('*', '?'):
            low, high = lowest, highest
            star = star or every <= 1
        else:
            low = _number(first, names)
            high = _number(more[0], names) if more else highest if step else low
        if not lowest <= low <= high <= highest or every < 1:
            raise ValueError(f'{item!r}: expected values from {lowest} to {highest}, in ascending order')
        values.update(range(low, high + 1, every))
    return values, star


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    if re.fullmatch(r'\+?[0-9]{1,18}', text, re.ASCII) is None:
        raise ValueError(f'{text!r} is no number' + (f' and none of {", ".join(names)}' if names else ''))
    return int(text)


def _every(spec: str, text: str) -> int:
    """Reads the duration of @every, in ms."""
    parts = _PART.findall(text)
    if not parts or ''.join(number + unit for number, unit in parts) != text.removeprefix('+'):
        raise ArgumentsError(
            f'the spec {spec!r}: expected a duration such as 90s or 1h30m after @every, found {text!r}'
        )
    ns = sum(int(Fraction(number) * _UNITS[unit]) for number, unit in parts)
    if not 10**6 <= ns < 2**63 or ns % 10**6:
        raise ArgumentsError(f'the spec {spec!r}: expected a positive duration in whole milliseconds')
    return ns // 10**6
