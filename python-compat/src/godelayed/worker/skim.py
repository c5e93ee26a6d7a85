"""Checks how many values a message has and how deep they are, without decoding it: a decoder that believes false
lengths takes gigabytes."""

from __future__ import annotations

from typing import NamedTuple

from ..values import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS


class MessageError(ValueError):
    """The bytes are not a message."""


class Limits(NamedTuple):
    """The limits of a message. Those of a Go task's payload are left to Go workers."""

    size: int  # bytes
    values: int  # containers and keys included
    depth: int  # arrays and maps inside one another


PROTOCOL = Limits(MAX_BYTES, MAX_ELEMENTS, MAX_DEPTH)
WORKER = Limits(MAX_BYTES + 4096, MAX_ELEMENTS + 64, MAX_DEPTH)  # retries and deaths add to messages

_MAPS = (*range(0x80, 0x90), 0xDE, 0xDF)
OPENERS = bytes((*range(0x90, 0xA0), 0xDC, 0xDD, *_MAPS))  # first bytes of arrays and maps
# By the first byte of a value: how many bytes its length takes, and how many bytes follow besides those that it counts.
_WIDTH, _SIZE = [0] * 256, [0] * 256
_WIDTH[0xC4:0xCA] = [1, 2, 4, 1, 2, 4]
_WIDTH[0xD9:0xE0] = [1, 2, 4, 2, 4, 2, 4]
_SIZE[0xA0:0xC0] = range(32)
_SIZE[0xC7:0xD9] = [1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17]


def check_message(raw: bytes, limits: Limits) -> None:
    """Checks a message against the limits. A MessageError says what is wrong."""
    end = len(raw)
    if end > limits.size:
        raise MessageError(f'expected at most {limits.size:,} bytes, found {end:,}')
    outer: list[int] = []  # values still to come in each enclosing container
    i, owed, total, left = 0, 1, 1, limits.values
    while total:
        while not owed:
            owed = outer.pop()
        # Every value that is still to come takes at least one byte, so more such values than bytes left show that a
        # header gives a false length.
        if total > end - i:
            raise MessageError(f'expected a whole value at byte {i}, found the end of the bytes')
        c = raw[i]
        i += 1 + _WIDTH[c]
        n = int.from_bytes(raw[i - _WIDTH[c] : i], 'big') if _WIDTH[c] else c & 15
        owed, total, left = owed - 1, total - 1, left - 1
        if c not in OPENERS:
            i += _SIZE[c] + (n if _WIDTH[c] else 0)
            continue
        if len(outer) >= limits.depth:
            text = f'expected at most {limits.depth} arrays and maps inside one another, found one more at byte {i}'
            raise MessageError(text)
        outer.append(owed)
        owed = 2 * n if c in _MAPS else n
        total += owed
        if total > left:
            raise MessageError(f'expected no more values than the limit allows, found too many at byte {i}')
    if i != end:
        raise MessageError(f'expected the end at byte {i}, found another length, {end:,} bytes')
