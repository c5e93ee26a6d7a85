"""Checks messages against limits without decoding them. It makes the same checks as internal/wire in Go."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from ..values import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS


class MessageError(ValueError):
    """The bytes are not a message."""


class Limits(NamedTuple):
    """The limits of a message. The values and the depth of a payload count separately."""

    size: int  # bytes
    values: int  # containers and keys included
    depth: int  # arrays and maps inside one another


PROTOCOL = Limits(MAX_BYTES, MAX_ELEMENTS, MAX_DEPTH)
WORKER = Limits(MAX_BYTES + 4096, MAX_ELEMENTS + 64, MAX_DEPTH)  # retries and deaths add to messages

OPENERS = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))  # first bytes of arrays and maps
_MAX_SECONDS = (1 << 63) - 1 - 62_135_596_800  # of a timestamp: the last that Go's time.Time can hold

# What follows the first byte of a value: a number of bytes, or one of these marks.
_LENGTH, _ARRAY, _MAP, _EXT, _NEVER = -1, -2, -3, -4, -5
_CONTAINERS = (_ARRAY, _MAP)
_NEXT = [0] * 256
_NEXT[0x80:0x90] = [_MAP] * 16
_NEXT[0x90:0xA0] = [_ARRAY] * 16
_NEXT[0xA0:0xC0] = range(32)
_NEXT[0xC0:0xE0] = [
    *(0, _NEVER, 0, 0),
    *(_LENGTH, _LENGTH, _LENGTH, _EXT, _EXT, _EXT),
    *(4, 8, 1, 2, 4, 8, 1, 2, 4, 8),
    *(_EXT, _EXT, _EXT, _EXT, _EXT),
    *(_LENGTH, _LENGTH, _LENGTH, _ARRAY, _ARRAY, _MAP, _MAP),
]
# The width in bytes of the length or number after the first byte.
_WIDTH = [0] * 256
_WIDTH[0xC4:0xCA] = [1, 2, 4, 1, 2, 4]
_WIDTH[0xD9:0xE0] = [1, 2, 4, 2, 4, 2, 4]
_NO_KEY = frozenset((*OPENERS, 0xC0, *range(0xC4, 0xCC), *range(0xD4, 0xD9)))
_BINARY = range(0xC4, 0xC7)


def check_value(raw: bytes, limits: Limits) -> None:
    """Checks the bytes of one value against the limits and what Go can read. A MessageError says what is wrong."""
    _check_size(raw, limits)
    _end(raw, _skim(raw, 0, limits.values, limits.depth, False)[0])


def check_message(raw: bytes, limits: Limits, known: Container[bytes]) -> None:
    """Checks a message and its payload against the limits, and that no known key of meta appears twice.

    It does not check the types of the parts. A MessageError says what is wrong.
    """
    _check_size(raw, limits)
    if _NEXT[raw[0]] != _ARRAY if raw else True:
        _end(raw, _skim(raw, 0, limits.values, limits.depth, True)[0])
        return
    n, i = _header(raw, 0)
    if n >= limits.values:
        raise _too_many(0)
    start, i = _text(raw, i, 'a path')
    python = b':' in raw[start:i]
    left = limits.values - 2
    for _ in range(min(n - 1, 3 if python else 1)):
        at = i
        i, left = _skim(raw, at, left, limits.depth - 1, True)
        if not python and raw[at] in _BINARY and (payload := raw[at + 1 + _WIDTH[raw[at]] : i]):
            check_value(payload, limits)
    if n == (5 if python else 3):
        i = _check_meta(raw, i, left - 1, limits, known)
    if left < 0:
        raise _too_many(i)
    _end(raw, i)


def _check_meta(raw: bytes, i: int, left: int, limits: Limits, known: Container[bytes]) -> int:
    """Checks the map at raw[i:] and returns where it ends. left is how many values it may contain."""
    n, i = _map(raw, i)
    left -= 2 * n
    if left < 0:
        raise _too_many(i)
    seen: set[Any] = set()
    for _ in range(n):
        start, at = _text(raw, i, 'a string as key of meta')
        key = raw[start:at]
        if key in seen:
            raise MessageError(f'expected each key of meta once, found {key[:40]!r} again at byte {i}')
        if key in known:
            seen.add(key)
        i, left = _skim(raw, at, left + 1, limits.depth - 2, False)
        if key == b'h' and _NEXT[raw[at]] == _MAP:
            _check_headers(raw, at)
    return i


def _check_headers(raw: bytes, i: int) -> None:
    n, i = _map(raw, i)
    seen: set[Any] = set()
    for _ in range(n):
        start, at = _text(raw, i, "strings in 'h'")
        key = raw[start:at]
        if key in seen:
            raise MessageError(f"expected each key of 'h' once, found one again at byte {i}")
        seen.add(key)
        i = _text(raw, at, "strings in 'h'")[1]


def _skim(b: bytes, i: int, values: int, depth: int, anything: bool) -> tuple[int, int]:
    """Walks over the value at b[i:]. Returns where the next one begins and how many of values are left.

    anything: accept every map key and extension, not only those that Go reads.
    """
    end = len(b)
    outer: list[tuple[int, bool]] = []  # values still to come in each enclosing container, and whether it is a map
    owed, total, is_map = 1, 1, False
    if values < 1:
        raise _too_many(i)
    while True:
        while not owed:
            if not outer:
                return i, values
            owed, is_map = outer.pop()
        # Every value that is still to come takes at least one byte, so more such values than bytes left show that a
        # header gives a false length.
        if total > end - i:
            raise _cut_off(i)
        c = b[i]
        if is_map and not owed & 1 and not anything and c in _NO_KEY:
            raise MessageError(f'expected a string, integer or boolean as map key at byte {i}, found 0x{c:02x}')
        owed -= 1
        total -= 1
        values -= 1
        n = _NEXT[c]
        if n >= 0:
            i += 1 + n
        elif n in _CONTAINERS:
            if len(outer) >= depth:
                raise MessageError(
                    f'expected at most {depth} arrays and maps inside one another, found one more at byte {i}'
                )
            outer.append((owed, is_map))
            is_map = n == _MAP
            owed, after = _header(b, i)
            total += owed
            if total > values:
                raise _too_many(i)
            i = after
        elif n == _LENGTH:
            w = _WIDTH[c]
            i += 1 + w + int.from_bytes(b[i + 1 : i + 1 + w], 'big')
        elif n == _EXT:
            if not anything:
                _check_time(b, i)
            w = _WIDTH[c]
            i += 2 + (w + int.from_bytes(b[i + 1 : i + 1 + w], 'big') if w else 1 << (c - 0xD4))
        else:
            raise MessageError(f'expected a value at byte {i}, found 0xc1, which MessagePack never uses')
        if i > end:
            raise _cut_off(end)


def _check_time(b: bytes, i: int) -> None:
    """Checks that the extension at b[i:] is a timestamp that Go can read."""
    if b[i : i + 2] == b'\xd6\xff':
        return
    nanoseconds, seconds = -1, 0
    if b[i : i + 2] == b'\xd7\xff':
        nanoseconds = int.from_bytes(b[i + 2 : i + 10], 'big') >> 34
    elif b[i : i + 3] == b'\xc7\x0c\xff':
        nanoseconds = int.from_bytes(b[i + 3 : i + 7], 'big')
        seconds = int.from_bytes(b[i + 7 : i + 15], 'big', signed=True)
    if not 0 <= nanoseconds < 1_000_000_000 or seconds > _MAX_SECONDS:
        raise MessageError(f'expected timestamps as the only extension, found another or none that counts at byte {i}')


def _header(b: bytes, i: int) -> tuple[int, int]:
    """Reads the header of the array or map at b[i:]. Returns its number of values and where the first one begins."""
    c = b[i]
    w = _WIDTH[c]
    if i + w >= len(b):
        raise _cut_off(i)
    n = int.from_bytes(b[i + 1 : i + 1 + w], 'big') if w else c & 15
    return 2 * n if _NEXT[c] == _MAP else n, i + 1 + w


def _map(b: bytes, i: int) -> tuple[int, int]:
    """Reads the header of a map. Returns its number of pairs and where the first one begins."""
    if i >= len(b) or _NEXT[b[i]] != _MAP:
        raise MessageError(f'expected a map at byte {i}, found another value')
    n, i = _header(b, i)
    return n // 2, i


def _text(b: bytes, i: int, what: str) -> tuple[int, int]:
    """Reads the string at b[i:]. Returns where its content begins and ends."""
    c = b[i] if i < len(b) else 0
    if not (0xA0 <= c < 0xC0 or 0xD9 <= c <= 0xDB):
        raise MessageError(f'expected {what} at byte {i}, found another value')
    w = _WIDTH[c]
    n = int.from_bytes(b[i + 1 : i + 1 + w], 'big') if w else c & 31
    i += 1 + w
    if i + n > len(b):
        raise _cut_off(len(b))
    return i, i + n


def _check_size(raw: bytes, limits: Limits) -> None:
    if len(raw) > limits.size:
        raise MessageError(f'expected at most {limits.size:,} bytes, found {len(raw):,}')


def _end(raw: bytes, i: int) -> None:
    if i != len(raw):
        raise MessageError(f'expected the end at byte {i}, found {len(raw) - i:,} bytes more')


def _too_many(i: int) -> MessageError:
    return MessageError(f'expected no more values than the limit allows, found too many at byte {i}')


def _cut_off(i: int) -> MessageError:
    return MessageError(f'expected a whole value at byte {i}, found the end of the bytes')
