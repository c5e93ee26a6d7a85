"""Scripts for all queues of one slot at once: one renews a worker's heartbeats, one finds out what there is to do, one
is for a sweeper."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from ..kinds import is_list
from .link import Link, RefusedError, ReplyError, WrongTypeError, size_of
from .store import Store, text_of

_PAGE = 200  # queues that one script looks at
_WORKERS = 1000  # ids of workers that one survey returns

T = TypeVar('T')


@dataclasses.dataclass
class Pulse:
    """What a heartbeat found out about one queue. claims and version are -1 if the caller did not ask for them."""

    alive: bool
    claims: int
    version: int


def beat(link: Link, stores: Sequence[Store], life: int, count: bool, look: bool) -> tuple[list[Pulse], float]:
    """Renews the heartbeats on queues of one slot for life ms, and returns the pulses and Redis's time in seconds.

    While a key has the wrong type it renews them all the same, in one call more, as if the caller did not ask for what
    that key has.
    """
    pulses: list[Pulse] = []
    now = 0.0
    for page in _pages(stores):
        keys: list[Any] = []
        for s in page:
            keys += [s.keys.heartbeat + s.worker, s.keys.processing + s.worker, s.keys.control]
        size = 2 + 3 * len(page)
        try:
            v = _run(link, size, 'beat', keys, life, int(count), int(look))
        except WrongTypeError:
            try:
                v = _run(link, size, 'beat', keys, life, int(count), int(look), 1)
            except RefusedError:  # the user may not call TYPE
                v = _run(link, size, 'beat', keys, life, 0, 0)
        pulses += [Pulse(v[i] == 1, v[i + 1], v[i + 2]) for i in range(2, len(v), 3)]
        now = v[0] + v[1] / 1e6
    return pulses, now


@dataclasses.dataclass
class Todo:
    """What there is to do on one queue. Times are in ms, negative for none."""

    pending: int
    due: int
    parked: int
    group: int
    suspects: int = 0  # also pending, but in a list of their own
    unknown: bool = False  # a key has the wrong type


def check(link: Link, stores: Sequence[Store]) -> tuple[list[Todo], WrongTypeError | None]:
    """Looks at queues of one slot, as _each does: what there is to do is unknown where a key has the wrong type."""

    def look(page: Sequence[Store]) -> list[Todo]:
        keys: list[Any] = []
        for s in page:
            k = s.keys
            keys += [k.list, k.scheduled, k.retry, k.parked, k.groups, k.suspects]
        v = _run(link, 5 * len(page), 'check', keys)
        return [Todo(*v[i : i + 5]) for i in range(0, len(v), 5)]

    return _each(stores, look, lambda: Todo(0, -1, 0, -1, unknown=True))


@dataclasses.dataclass
class Sight:
    """What a sweeper found on one queue."""

    mine: bool  # whether the sweeper holds the advisory lock
    workers: list[str]
    pending: int
    noti: int
    legacy: int


def survey(link: Link, stores: Sequence[Store], sweeper: str, lock: int) -> tuple[list[Sight], WrongTypeError | None]:
    """Looks at queues of one slot, and takes or renews their advisory locks for lock ms where it can.

    It does so as _each does: where a key has the wrong type, there is nothing, and no lock.
    """

    def look(page: Sequence[Store]) -> list[Sight]:
        keys: list[Any] = []
        for s in page:
            k = s.keys
            keys += [k.sweeper, k.workers, k.list, k.noti, k.legacy]
        sights: list[Sight] = []
        for s, row in zip(page, _run(link, len(page), 'survey', keys, sweeper, lock, _WORKERS)):
            mine, workers, pending, noti, legacy = row
            ids = s.scan_workers(link, _WORKERS) if workers is None else [text_of(w) for w in workers]
            sights.append(Sight(mine == 1, ids, pending, noti, legacy))
        return sights

    return _each(stores, look, lambda: Sight(False, [], 0, 0, 0))


def _each(
    stores: Sequence[Store], look: Callable[[Sequence[Store]], list[T]], nothing: Callable[[], T], most: int = _PAGE
) -> tuple[list[T], WrongTypeError | None]:
    """Looks at so many stores at once as most says, and halves these if a key has the wrong type, to find its store.

    That must not keep the other queues waiting. Returns what it found, with nothing in the place of such a store, and
    the last such error.
    """
    found: list[T] = []
    fault: WrongTypeError | None = None
    for page in _pages(stores, most):
        try:
            found += look(page)
            continue
        except WrongTypeError as e:
            fault = e
        if len(page) == 1:
            found.append(nothing())
        else:
            found += _each(page, look, nothing, (len(page) + 1) // 2)[0]
    return found, fault


def _pages(stores: Sequence[Store], most: int = _PAGE) -> Iterator[Sequence[Store]]:
    for i in range(0, len(stores), most):
        yield stores[i : i + most]


def _run(link: Link, size: int, name: str, *args: Any) -> list[Any]:
    """Runs a script that answers with so many values."""
    values = link.run(name, *args)
    if not is_list(values) or len(values) != size:
        raise ReplyError(f'{name}: expected {size} values, found {size_of(values)}')
    return values
