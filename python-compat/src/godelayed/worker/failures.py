"""What a message remembers of attempts that have failed: `er` in its meta, which docs/PROTOCOL.md describes."""

from __future__ import annotations

from typing import Any

import msgpack

from ..kinds import is_list
from ..text import lines, one_line
from .info import clip, tail

_MOST = 6
_MOST_BYTES = 2560  # of all of them, as they are written
_MOST_WORKER, _MOST_ERROR, _MOST_STACK = 128, 512, 1024  # bytes


def add(old: Any, attempt: int, at: int, worker: str, error: str, stack: str) -> list[Any]:
    """Returns the failures of a message with one more. The oldest go if there are too many.

    at is in ms since 1970. Of a stack the end is kept, which says where the error was raised.
    """
    failures = [f for f in old[:_MOST] if _is_failure(f)] if is_list(old) else []
    failures.append(
        [
            attempt,
            at,
            clip(one_line(worker), _MOST_WORKER),
            clip(one_line(error), _MOST_ERROR),
            tail(lines(stack), _MOST_STACK),
        ]
    )
    while len(failures) > _MOST or len(msgpack.packb(failures)) > _MOST_BYTES:
        del failures[0]
    return failures


def _is_failure(f: Any) -> bool:
    return is_list(f) and len(f) >= 5 and all(type(v) is int for v in f[:2]) and all(isinstance(v, str) for v in f[2:5])
