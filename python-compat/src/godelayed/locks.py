"""Names of locks and of groups, with the same bytes as in Go. docs/PROTOCOL.md describes both."""

from __future__ import annotations

import base64
import hashlib

LOCK_ARGUMENTS = 'u:'
LOCK_KEY = 'k:'
LOCK_ID = '#'


def lock_of_arguments(path: str, arguments: bytes) -> str:
    """Returns the name of the lock of a function with certain arguments. arguments are, for a Go task, the payload
    without the header of its array; for a Python task, args and kwargs, each left out when it is empty."""
    digest = hashlib.sha256(path.encode() + b'\0' + arguments).digest()[:24]
    return LOCK_ARGUMENTS + base64.urlsafe_b64encode(digest).decode().rstrip('=')


def group_name(path: str, key: str, fixed: int, arguments: bytes) -> str:
    """Returns the name of a group in Redis. arguments are the bytes of the first fixed arguments, concatenated."""
    head = b''
    for part in (path.encode(), key.encode()):
        head += _uvarint(len(part)) + part
    return hashlib.sha256(head + _uvarint(fixed) + arguments).hexdigest()[:32]


def _uvarint(n: int) -> bytes:
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)
