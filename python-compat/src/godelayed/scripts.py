"""The Lua scripts of the project, the same files that Go runs.

The comment at the head of each file describes its keys, arguments and replies.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from typing import Any, cast

__all__ = ['Script', 'script']


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


ACK = script('ack')
AGENDA = script('agenda')
ACQUIRE = script('acquire')
ANNOUNCE = script('announce')
ANNUL = script('annul')
AUDIT = script('audit')
BEAT = script('beat')
CANCEL = script('cancel')
CHECK = script('check')
CLAIM = script('claim')
COMPLETE = script('complete')
CONDEMN = script('condemn')
CONTROL = script('control')
DELETE = script('delete')
DEPTH = script('depth')
ENLIST = script('enlist')
ENQUEUE = script('enqueue')
ENTRY = script('entry')
EXPIRE = script('expire')
FIELDS = script('fields')
FIRE = script('fire')
FORGET = script('forget')
GATHER = script('gather')
HASTEN = script('hasten')
JOIN = script('join')
LAPSE = script('lapse')
LENGTHS = script('lengths')
LIVES = script('lives')
LOOK = script('look')
MARK = script('mark')
MODE = script('mode')
METRICS = script('metrics')
MOVE = script('move')
OVERVIEW = script('overview')
PAGE = script('page')
PARDON = script('pardon')
PEEK = script('peek')
PROGRESS = script('progress')
PUBLISH = script('publish')
REFILE = script('refile')
REFORM = script('reform')
REGISTER = script('register')
RELEASE = script('release')
REPAIR = script('repair')
RERUN = script('rerun')
REWAIT = script('rewait')
RIPE = script('ripe')
ROSTER = script('roster')
SCHEDULE = script('schedule')
SHELF = script('shelf')
SHELVE = script('shelve')
SURVEY = script('survey')
SWEEP = script('sweep')
TICK = script('tick')
TRIM = script('trim')
UNLOCK = script('unlock')
UNPARK = script('unpark')
UNREGISTER = script('unregister')
WITHDRAW = script('withdraw')
WORKERS = script('workers')
