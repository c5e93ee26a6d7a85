"""Names of locks and of groups, byte for byte as Go makes them. docs/PROTOCOL.md describes both."""

from __future__ import annotations

import base64
import hashlib

LOCK_ARGUMENTS = 'u:'
LOCK_KEY = 'k:'
LOCK_ID = '#'


def lock_of_arguments(path: str, arguments: bytes) -> str:
    """The lock of a function with its arguments: the payload of a Go task, without the header of an array of one; args
    and kwargs of a Python task, each of them nothing when it is empty."""
    digest = hashlib.sha256(path.encode() + b'\0' + arguments).digest()[:24]
    return LOCK_ARGUMENTS + base64.urlsafe_b64encode(digest).decode().rstrip('=')


def group_name(path: str, key: str, fixed: int, arguments: bytes) -> str:
    """What a group is called in Redis. arguments are the bytes of the first fixed arguments, one after the other."""
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
