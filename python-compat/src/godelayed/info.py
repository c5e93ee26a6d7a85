"""What Redis knows about one task."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from typing import Any, NamedTuple

import msgpack

from .errors import CanceledError, DelayedError, NoResultError, TaskError
from .kinds import is_dict, is_list
from .times import from_milliseconds
from .values import MAX_BYTES, unpack


class State(enum.StrEnum):
    """Where a task is.

    Redis has no index of pending and active tasks by id, because that would make every task slower: they are unknown.
    """

    UNKNOWN = 'unknown'
    SCHEDULED = 'scheduled'
    RETRY = 'retry'
    PARKED = 'parked'
    ARCHIVED = 'archived'
    ACTIVE = 'active'
    COMPLETED = 'completed'
    DROPPED = 'dropped'
    AGGREGATING = 'aggregating'
    CANCELED = 'canceled'


class Progress(NamedTuple):
    """The last progress that a task reported: zeros and no note if it has reported none."""

    done: int
    total: int
    note: str


@dataclasses.dataclass(frozen=True)
class TaskInfo:
    """What Redis knows about a task that waits, is archived, is completed or has reported its progress.

    Of other tasks only the id is known.

    Times are aware datetimes by Redis's clock, `enqueued_at` by the producer's; None if unknown, or after the year
    9999. `due` is when a scheduled or retrying task is due, when a parked one will be archived, or when an archived or
    completed one will be deleted; `at` is when it failed, was parked, was completed or reported its progress. `reason`
    says why it is in its state; `error` and `stack` are those of its last failure, up to 4 KiB each.
    """

    id: str
    state: State
    function: str = ''
    due: datetime.datetime | None = None
    enqueued_at: datetime.datetime | None = None
    began: datetime.datetime | None = None
    at: datetime.datetime | None = None
    first_failed: datetime.datetime | None = None
    reason: str = ''
    error: str = ''
    stack: str = ''
    attempts: int = 0
    deaths: int = 0
    worker: str = ''
    progress: Progress = Progress(0, 0, '')


class Note:
    """The map that Redis keeps of a task besides its message. It leaves out what it cannot read."""

    def __init__(self, raw: bytes | None) -> None:
        self.fields: dict[str, Any] = {}
        if raw:
            try:
                found = msgpack.unpackb(raw, strict_map_key=False, max_bin_len=2 * MAX_BYTES)
            except (ValueError, TypeError, RecursionError):
                found = None
            if is_dict(found):
                self.fields = found

    def text(self, key: str) -> str:
        v = self.fields.get(key)
        return v if isinstance(v, str) else ''

    def number(self, key: str) -> int:
        v = self.fields.get(key)
        return v if type(v) is int else 0

    def time(self, key: str) -> datetime.datetime | None:
        ms = self.number(key)
        return from_milliseconds(ms) if ms > 0 else None

    def binary(self, key: str) -> bytes | None:
        v = self.fields.get(key)
        return v if isinstance(v, bytes) else None


class Found:
    """A reply of the script look. Scores are ms since 1970; None if the task is not in that set."""

    def __init__(self, reply: list[Any]) -> None:
        if not is_list(reply) or len(reply) != 9:
            raise DelayedError(
                f'look: expected 9 values, found {len(reply) if is_list(reply) else type(reply).__name__}'
            )
        self.now = int(reply[0])
        self.scheduled, self.retry, self.parked, self.archived, self.completed = (
            None if s is None else int(float(s)) for s in reply[1:6]
        )
        self.info, self.result = reply[6], reply[7]
        # For a message that is too large, Redis returns only its size.
        self.message: bytes | None = None if isinstance(reply[8], int) else reply[8]
        self.size: int = reply[8] if isinstance(reply[8], int) else 0
        if self.completed is not None and self.completed <= self.now:
            self.completed = self.result = None

    def place(self) -> tuple[State, int | None, Note]:
        """Returns the state, the time of its set, and the info. A task that waits comes before an archived one, and an
        archived one before a completed one."""
        for state, due in (
            (State.SCHEDULED, self.scheduled),
            (State.RETRY, self.retry),
            (State.PARKED, self.parked),
            (State.ARCHIVED, self.archived),
        ):
            if due is not None:
                return state, due, Note(self.info)
        if self.completed is not None:
            note = Note(self.result)
            return (
                {'dropped': State.DROPPED, 'canceled': State.CANCELED}.get(note.text('reason'), State.COMPLETED),
                self.completed,
                note,
            )
        if self.result is not None:
            return State.ACTIVE, None, Note(self.result)
        return State.UNKNOWN, None, Note(None)

    def outcome(self, id: str, enqueued: int) -> Outcome | None:
        """Returns how the task has ended, None if it has not.

        It ignores what is left of another task with the same id, enqueued before `enqueued` (ms since 1970).
        """
        if self.completed is not None:
            note = Note(self.result)
            if not 0 < note.number('enqueued') < enqueued:
                return Outcome(id, State.DROPPED, note)
        if self.archived is not None:
            return Outcome(id, State.ARCHIVED, Note(self.info))
        return None

    def task(self, id: str) -> TaskInfo:
        """Returns what users see of the task."""
        state, due, note = self.place()
        path, meta = read(note.binary('message') if state in (State.COMPLETED, State.DROPPED) else self.message)
        at = meta.get('at')
        return TaskInfo(
            id=id,
            state=state,
            function=path or note.text('function'),
            due=None if due is None else from_milliseconds(due),
            enqueued_at=from_milliseconds(at) if type(at) is int and at > 0 else note.time('enqueued'),
            began=note.time('began'),
            at=note.time('at'),
            first_failed=note.time('first'),
            reason=note.text('reason') or ('too large' if self.size else ''),
            error=note.text('error') or (f'the message has {self.size} bytes' if self.size else ''),
            stack=note.text('stack'),
            attempts=note.number('attempts'),
            deaths=note.number('deaths'),
            worker=note.text('worker'),
            progress=Progress(note.number('done'), note.number('total'), note.text('note')),
        )


class Outcome:
    """How a task has ended."""

    def __init__(self, id: str, state: State, note: Note) -> None:
        self._id, self._state, self._note = id, state, note

    def value(self) -> Any:
        """Returns what the function returned, None if it returns nothing.

        Raises TaskError if the task failed, NoResultError if its result was not kept.
        """
        note = self._note
        reason = note.text('reason')
        if reason != 'completed':
            kind, state = (CanceledError, State.CANCELED) if reason == 'canceled' else (TaskError, self._state)
            raise kind(
                self._id,
                str(state),
                reason,
                note.text('error'),
                note.number('attempts'),
                note.number('deaths'),
                note.time('at'),
                note.text('stack'),
            )
        raw = note.binary('result')
        if raw is not None:
            try:
                return unpack(raw)
            except (ValueError, TypeError, RecursionError) as e:
                raise NoResultError(f'task {self._id} has succeeded, but its result cannot be read: {e}') from e
        if note.text('error'):
            raise NoResultError(
                f'task {self._id} has succeeded, but what it returned could not be kept: {note.text("error")}'
            )
        return None


def read(message: bytes | None) -> tuple[str, dict[str, Any]]:
    """Returns the path and the meta of a message; '' and an empty dict if the bytes are not a message."""
    try:
        fields = msgpack.unpackb(message or b'', strict_map_key=False)
    except (ValueError, TypeError, RecursionError):
        return '', {}
    if isinstance(fields, str):
        return fields, {}
    if not is_list(fields) or not fields or not isinstance(fields[0], str):
        return '', {}
    place = 4 if ':' in fields[0] else 2
    meta: Any = fields[place] if len(fields) == place + 1 else {}
    return fields[0], meta if is_dict(meta) else {}


def lock_of(meta: dict[str, Any]) -> str:
    """Returns the lock that a message names in its meta, '' for none."""
    name = meta.get('uk')
    return name if isinstance(name, str) else ''


def canceled(message: bytes, now: int) -> tuple[int, bytes, str]:
    """Returns for how many ms to keep the info of a cancelled task, that info, and the task's lock or ''. now is in
    ms."""
    path, meta = read(message)
    keep = max(_number(meta, 'kr'), _number(meta, 'rn'))
    if not keep:
        return 0, b'', lock_of(meta)
    note: dict[str, Any] = {'reason': 'canceled', 'at': now}
    for key, value in (
        ('enqueued', _number(meta, 'at')),
        ('attempts', _number(meta, 'rt')),
        ('deaths', _number(meta, 'd')),
    ):
        if value:
            note[key] = value
    note['function'] = path
    if _number(meta, 'rn'):
        note['message'] = message
    return keep, msgpack.packb(note), lock_of(meta)


def _number(meta: dict[str, Any], key: str) -> int:
    v = meta.get(key)
    return v if type(v) is int else 0
