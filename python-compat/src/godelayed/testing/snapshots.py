"""Tasks as they are in a queue, for expectations of tests."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import ANY

import redis

from ..calls import checked_path
from ..info import Note
from ..keys import Keys
from ..kinds import is_list
from ..signature import Typed, call
from ..text import one_line
from ..times import from_milliseconds
from ..values import Plain, unpack
from ..worker.message import Message, MessageError

_SHELVES = ('scheduled', 'retry', 'parked', 'archived', 'completed')
_WAITING = ('pending', 'scheduled', 'retry', 'aggregating')
_MOST = 200  # characters of an argument that are shown


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A task as it was in a queue. Fields that do not apply are empty.

    state is pending, active, aggregating, scheduled, retry, parked, archived or completed, or canceled of a task that
    was cancelled while it was pending. args and kwargs are what was sent: dataclasses as dicts, tuples as lists. due is
    when a waiting task becomes pending, by the time of the server. error and reason say why it failed last, or was
    parked or archived. meta is what else the message carries, by the keys of docs/PROTOCOL.md: headers are h, say.
    """

    queue: str
    state: str
    id: str
    function: str = ''
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    due: datetime.datetime | None = None
    retried: int = 0
    reason: str = ''
    error: str = ''
    meta: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])

    @property
    def waits(self) -> bool:
        """Whether the task is still to run. Tasks of Go that were parked here do so for a worker of Go."""
        return self.state in _WAITING or self.state == 'parked' and self.reason == 'go'

    def __str__(self) -> str:
        return one_line(call_text(self.function or '(no task)', self.args, self.kwargs))

    def told(self) -> str:
        """Returns the call and where it is, for messages."""
        due = f', due at {self.due:%Y-%m-%d %H:%M:%S}' if self.due and self.waits else ''
        why = self.error or self.reason
        return one_line(f'{self}  {self.state}{due}{": " if why else ""}{why}')


def call_text(path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Returns a call as it is written in code."""
    shown = [_shown(a) for a in args] + [f'{k}={_shown(a)}' for k, a in kwargs.items()]
    return f'{path}({", ".join(shown)})'


def _shown(value: Any) -> str:
    text = '...' if value is ... else 'ANY' if value is ANY else repr(value)
    return text if len(text) <= _MOST else text[:_MOST] + '…'


def snapshot(
    queue: str, state: str, id: str, raw: bytes, at: float | None = None, info: bytes | None = None
) -> Snapshot:
    """Reads a message."""
    note = Note(info)
    due = None if at is None else from_milliseconds(at)
    told: dict[str, Any] = {'due': due, 'reason': note.text('reason'), 'error': note.text('error')}
    try:
        m = Message(raw)
    except MessageError as e:
        told['error'] = told['error'] or str(e)
        return Snapshot(queue, state, id, note.text('function'), **told)
    args: Any = m.args
    if m.payload:
        args = unpack(m.payload)
        args = args if is_list(args) and m.meta.get('n', len(args)) == len(args) else [args]
    return Snapshot(queue, state, id or m.id, m.path, tuple(args), m.kwargs, retried=m.retried, meta=m.meta, **told)


def snapshots(client: redis.Redis, queue: str, prefix: str) -> Iterator[Snapshot]:
    """Yields all tasks of a queue: pending ones in their order, then those of other states."""
    c: Any = client
    k = Keys(queue, prefix)
    revoked = {id.decode() for id in c.zrange(k.revoked, 0, -1)}
    for raw in (*c.lrange(k.list, 0, -1), *c.lrange(k.suspects, 0, -1)):
        if raw != b'-':  # a gap, which a cancelled task has left
            found = snapshot(queue, 'pending', '', raw)
            yield dataclasses.replace(found, state='canceled') if found.id and found.id in revoked else found
    for worker in c.smembers(k.workers):
        for raw in c.hvals(k.processing + worker.decode()):
            yield snapshot(queue, 'active', '', raw)
    for group, at in c.zrange(k.groups, 0, -1, withscores=True):
        for raw in c.lrange(k.group + group.decode(), 0, -1):
            yield snapshot(queue, 'aggregating', '', raw, at)
    for state in _SHELVES:
        for id, at in c.zrange(getattr(k, state), 0, -1, withscores=True):
            info = c.hget(k.results if state == 'completed' else k.info, id)
            raw = Note(info).binary('message') if state == 'completed' else c.hget(k.tasks, id)
            yield snapshot(queue, state, id.decode(), raw or b'', at, info)


def _typed(function: Any) -> bool:
    return isinstance(function, Typed)


class _Expected(Plain):
    """Converts arguments as producers do, except what is compared as it is."""

    def _other(self, v: Any, where: str, depth: int) -> Any:
        return v if v is ANY or isinstance(v, datetime.datetime) else super()._other(v, where, depth)


class Expectation:
    """A call that a test expects. function is what delay takes; ... as the only argument stands for any arguments."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._function: Any = function
        self._any = args == (...,) and not kwargs
        self.path: str = function.path if _typed(function) else checked_path(function)
        self._text = call_text(self.path, args, kwargs)
        if not self._any:
            wanted, plain = call(function, *args, **kwargs), _Expected(self.path)
            self._bound = self._bind(plain.arguments(wanted.args, 1), plain.keywords(wanted.kwargs, 1))

    def __str__(self) -> str:
        return self._text

    def _bind(self, args: Any, kwargs: Any) -> Any:
        """Returns the arguments as they reach the function, whether by position or by name."""
        signature = self._function._signature.signature if _typed(self._function) else None
        if signature is None:
            return list(args), kwargs
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # of a task that was enqueued by path
            return list(args), kwargs
        bound.apply_defaults()
        return bound.arguments

    def met(self, found: Snapshot) -> bool:
        """Returns whether a task is that call and still to run."""
        if found.function != self.path or not found.waits:
            return False
        return self._any or bool(self._bound == self._bind(found.args, found.kwargs))
