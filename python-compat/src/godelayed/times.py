"""Durations and times of options, as milliseconds."""

from __future__ import annotations

import datetime

import msgpack

from .errors import ArgumentsError

# A duration: a number of seconds, or a timedelta.
Seconds = float | datetime.timedelta

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_MOST = 9_000_000_000  # seconds; about the most that Go's durations can hold


def milliseconds(value: Seconds, name: str, *, up: bool = False) -> int:
    """Converts a duration to whole milliseconds, rounded down or up from microseconds.

    name is the name of the option, for errors.
    """
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _MOST:
        raise ArgumentsError(f'option {name}: expected seconds or a timedelta, found {value!r}')
    micro = round(value * 1_000_000)
    return -(-micro // 1000) if up else micro // 1000


def positive(value: Seconds, name: str, *, up: bool = True) -> int:
    """Converts a duration that must be positive."""
    ms = milliseconds(value, name, up=up)
    if ms <= 0:
        raise ArgumentsError(f'option {name}: expected a positive duration of at least 1 ms, found {value!r}')
    return ms


def moment(value: datetime.datetime, name: str) -> int:
    """Converts an aware datetime to ms since 1970, rounded down; times before 1970 become 0."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise ArgumentsError(f'option {name}: expected a datetime with a time zone, found {value!r}')
    return max(0, (value - EPOCH) // _MILLISECOND)


def later(value: datetime.datetime, name: str) -> int:
    """Converts an aware datetime that must be after 1970."""
    ms = moment(value, name)
    if ms <= 0:
        raise ArgumentsError(f'option {name}: expected a time after 1970, found {value!r}')
    return ms


def from_milliseconds(ms: float) -> datetime.datetime | None:
    """Returns the time in UTC that is this many ms after 1970; None if a datetime cannot hold it."""
    try:
        return EPOCH + datetime.timedelta(milliseconds=ms)
    except OverflowError:
        return None


def datetime_of(value: msgpack.Timestamp) -> datetime.datetime | None:
    """Returns the time in UTC, cut to microseconds; None if a datetime cannot hold it."""
    try:
        return EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanoseconds // 1000)
    except OverflowError:
        return None
