"""The Lua scripts of the project, the same files that Go runs.

The comment at the head of each file describes its keys, arguments and replies. In a clone the files are those of lua/
beside python-compat; an installed package has them in its own folder lua.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

_OWN = Path(__file__).parent / 'lua'
_LUA = _OWN if _OWN.is_dir() else Path(__file__).resolve().parents[3] / 'lua'


def _included(args: str) -> str:
    """Returns the text of an include without its header. NAME=text says what stands in place of a name in it."""
    name, *values = args.split()
    lines = (_LUA / 'include' / f'{name}.lua').read_text(encoding='utf-8').splitlines(keepends=True)
    while lines[0].startswith('--'):
        del lines[0]
    text = ''.join(lines)
    for value in values:
        placeholder, _, replacement = value.partition('=')
        text = text.replace(placeholder, replacement)
    return text


class Script:
    """One file of lua/."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f'Script({self.name!r})'

    @functools.cached_property
    def source(self) -> bytes:
        """The source of the script, as it is sent to Redis, with the text of each include behind the line of that."""
        text = ''
        for line in (_LUA / f'{self.name}.lua').read_text(encoding='utf-8').splitlines(keepends=True):
            text += line
            if line.lstrip().startswith('--#include '):
                text += _included(line.split('--#include ')[1])
        return text.encode()

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
