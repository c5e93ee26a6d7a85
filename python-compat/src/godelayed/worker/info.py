"""What Redis keeps of a task besides its message: a MessagePack map, which docs/PROTOCOL.md describes under Results."""

from __future__ import annotations

from typing import Any

import msgpack

from ..kinds import is_dict
from ..text import lines, one_line

_MOST_TEXT = 4096  # bytes
_ORDER = (
    'reason',
    'at',
    'first',
    'enqueued',
    'began',
    'function',
    'error',
    'stack',
    'worker',
    'attempts',
    'deaths',
    'done',
    'total',
    'note',
)


def encode(**fields: Any) -> bytes:
    """Encodes the info of a task. It leaves out empty fields and escapes control characters in texts.

    Times are ms since 1970.
    """
    out: dict[str, Any] = {}
    for name in _ORDER:
        v = fields.get(name)
        if v:
            out[name] = v if not isinstance(v, str) else tail(lines(v)) if name == 'stack' else clip(one_line(v))
    for name in ('result', 'message'):
        if fields.get(name) is not None:
            out[name] = fields[name]
    b: bytes = msgpack.packb(out, use_bin_type=True)
    return b


def function_of(info: bytes | None) -> str:
    """Returns the function that an encoded info names, '' if it names none."""
    if not info:
        return ''
    try:
        fields = msgpack.unpackb(info, raw=False)
    except Exception:  # other programs may have written anything there
        return ''
    function = fields.get('function') if is_dict(fields) else None
    return function if isinstance(function, str) else ''


def clip(text: str, most: int = _MOST_TEXT) -> str:
    """Shortens a text to what Redis keeps of it, in bytes, and replaces characters that cannot be encoded."""
    b = text.encode('utf-8', 'replace')
    return b[:most].decode('utf-8', 'ignore') if len(b) > most else b.decode()


def tail(stack: str, most: int = _MOST_TEXT) -> str:
    """Returns the last lines of a stack that fit, or the end of the last line: they say where the error was raised."""
    b = stack.encode('utf-8', 'replace')
    if len(b) <= most:
        return b.decode()
    _, _, whole = b[-most:].partition(b'\n')
    return (whole or b[-most:]).decode('utf-8', 'ignore')
