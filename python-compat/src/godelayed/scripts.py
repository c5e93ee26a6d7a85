"""The Lua scripts of the project, the same files that Go runs.

Each file's head says what its keys, arguments and replies are.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import resources

__all__ = ['Script', 'script']


class Script:
    """One file of lua/."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f'Script({self.name!r})'

    @functools.cached_property
    def source(self) -> bytes:
        """The text, as Redis gets it."""
        return resources.files(__package__).joinpath('lua', self.name + '.lua').read_bytes()

    @functools.cached_property
    def reads(self) -> bool:
        """Whether it changes nothing, as its header says."""
        return b'Reads only' in self.source

    @functools.cached_property
    def sha(self) -> str:
        """The name by which Redis knows the text."""
        return hashlib.sha1(self.source).hexdigest()


@functools.cache
def script(name: str) -> Script:
    """Returns a script by the name of its file, without the ending."""
    return Script(name)


ACK = script('ack')
AGENDA = script('agenda')
ANNUL = script('annul')
BEAT = script('beat')
CANCEL = script('cancel')
CHECK = script('check')
CLAIM = script('claim')
COMPLETE = script('complete')
CONDEMN = script('condemn')
CONTROL = script('control')
DELETE = script('delete')
ENLIST = script('enlist')
ENQUEUE = script('enqueue')
ENTRY = script('entry')
EXPIRE = script('expire')
FIELDS = script('fields')
FIRE = script('fire')
FORGET = script('forget')
GATHER = script('gather')
JOIN = script('join')
LAPSE = script('lapse')
LIVES = script('lives')
LOOK = script('look')
MARK = script('mark')
MODE = script('mode')
MOVE = script('move')
PAGE = script('page')
PARDON = script('pardon')
PEEK = script('peek')
PROGRESS = script('progress')
PUBLISH = script('publish')
REFORM = script('reform')
REGISTER = script('register')
RELEASE = script('release')
REPAIR = script('repair')
RERUN = script('rerun')
REWAIT = script('rewait')
RIPE = script('ripe')
SCHEDULE = script('schedule')
SHELVE = script('shelve')
SURVEY = script('survey')
SWEEP = script('sweep')
TICK = script('tick')
TRIM = script('trim')
UNLOCK = script('unlock')
UNPARK = script('unpark')
UNREGISTER = script('unregister')
