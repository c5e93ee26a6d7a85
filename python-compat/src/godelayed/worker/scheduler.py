"""Enqueues the ticks of a queue's periodic entries, whoever has set them and in whatever language."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import DelayedError
from ..link import run
from ..producer import Settings
from ..registry import Registry
from .agenda import PAGE, Agenda
from .config import WorkerConfig
from .entries import Definition, Record
from .lane import Lane
from .link import Complaints, Link, UnansweredError, UnreachableError
from .message import MessageError

logger = logging.getLogger('godelayed.worker')

_LATER = 5.0  # seconds after which to look again at an entry that cannot be served here
_AGAIN = 1.0  # the same, at one whose previous task has not ended, or after an error


class Declared(NamedTuple):
    """The entries that the code of an owner declares for a queue."""

    owner: str
    version: int
    entries: Mapping[str, Definition]


def declarations(registry: Registry, queue: str) -> list[Declared]:
    """Returns what the applications of registered functions declare for a queue, by owner."""
    found: dict[str, Declared] = {}
    for app in {f.app for f in map(registry.get, registry.paths()) if f is not None and f.app is not None}:
        if app.owner:
            other = found.get(app.owner, Declared(app.owner, 0, {}))
            both = {**other.entries, **app.entries.get(queue, {})}
            found[app.owner] = Declared(app.owner, max(other.version, app.version), both)
    return list(found.values())


def schedulers(link: Link, cfg: WorkerConfig, registry: Registry, lanes: Sequence[Lane]) -> list[Scheduler]:
    """Returns the schedulers of some of a worker's queues, which share a link; none if the worker has none."""
    return [
        Scheduler(Settings(lane.name, cfg.prefix, cfg.legacy), link, declarations(registry, lane.name), lane)
        for lane in (lanes if cfg.periodic else ())
    ]


class _Blocking:
    """The worker's link, as the agenda uses it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def run(self, name: str, keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
        return self._link.run(name, keys, *args)

    async def send(self, *command: Any) -> Any:
        return self._link.do(*command)


class Scheduler:
    """Sees to the entries of one queue. It belongs to the mover's thread."""

    def __init__(self, settings: Settings, link: Link, declared: Sequence[Declared], lane: Lane) -> None:
        self._name = settings.name
        self._link = link
        self._lane = lane
        self._agenda = Agenda(settings, _Blocking(link))
        self._declared = list(declared)
        self._left = list(declared)  # what is not declared yet
        self._again = False
        # The registration and the connection when it was declared. After other ones Redis may not know it any more.
        self._when = '', 0
        self._complaints, self._unservable = Complaints(), Complaints()

    def look(self) -> float:
        """Enqueues what is due, and returns in how many seconds to look again. It raises an error if Redis is away."""
        try:
            pause = self._look()
        except (UnreachableError, UnansweredError):
            raise
        except DelayedError as e:
            self._complaints.trouble(logger, f'queue {self._name}: periodic entries: trying again', e)
            return _AGAIN
        self._complaints.relief(logger, f'queue {self._name}: periodic entries are seen to again')
        return pause

    def _look(self) -> float:
        if self._declared:
            self._link.open()
            when = self._lane.pulse, self._link.dials
            if self._when[0] and when != self._when and not self._left:
                self._left, self._again = list(self._declared), True
            self._when = when
        while self._left:
            run(self._agenda.declare(*self._left[0], self._again))
            del self._left[0]
        pause, left = _LATER, 0
        while True:
            now, ahead, entries = run(self._agenda.due(left))
            waits = [self._serve(name, raw, now) for name, raw in entries]
            kept = [w for w in waits if w]
            left += len(kept)
            pause = min(pause, *kept, ahead / 1000 if ahead >= 0 else pause)
            if len(kept) == len(waits) < PAGE:
                return pause

    def _serve(self, name: str, raw: bytes, now: int) -> float:
        """Enqueues the ticks of a due entry. Returns 0 if it is no longer due, else when to look at it again."""
        if not raw:  # a time without an entry, which no program leaves behind
            run(self._agenda.write(name, b'', b'', None))
            return 0
        try:
            p = Record(name, raw).plan(now)
        except (DelayedError, MessageError) as e:
            # Another process may be able to: a newer one, or one that knows the zone.
            self._unservable.trouble(logger, f'queue {self._name}: periodic entry {name} cannot be served here', e)
            return _LATER
        if not p.ticks:  # it is not due: processes with different versions of a zone's rules may disagree
            run(self._agenda.write(name, raw, p.free, p.due_free))
            return 0
        status, _ = run(self._agenda.tick(p))
        due = p.due_held if status == 2 else p.due_free
        waits = status == 2 and p.held == raw or status > 0 and bool(p.lock) and due is not None and due <= now
        return _AGAIN if waits else 0
