"""The Lua scripts of the project, the same files that Go runs.

The comment at the head of each file describes its keys, arguments and replies.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from typing import Any, cast


class Script:
    """One file of lua/."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f'Script({self.name!r})'

    @functools.cached_property
    def source(self) -> bytes:
        """The source of the script, as it is sent to Redis."""
        found: bytes = cast('Any', resources.files('godelayed')).joinpath('lua', self.name + '.lua').read_bytes()
        return found

    @functools.cached_property
    def reads(self) -> bool:
        """Whether the script changes nothing, as its header says."""
        return b'Reads only' in self.source

    @functools.cached_property
    def sha(self) -> str:
        """The SHA-1 hash by which Redis knows the script."""
        return hashlib.sha1(self.source).hexdigest()


@functools.cache
def script(name: str) -> Script:
    """Returns the script in the file with this name, without the extension."""
    return Script(name)
