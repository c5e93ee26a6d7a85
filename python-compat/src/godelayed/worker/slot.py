"""Scripts for all queues of one slot at once: one renews a worker's heartbeats, one finds out what there is to do, one
notes how much that is, one is for a sweeper."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..kinds import is_list
from .link import Link, ReplyError, size_of
from .store import STATS_LIFE, Store, text_of


@dataclasses.dataclass
class Pulse:
    """What a heartbeat found out about one queue. claims and version are -1 if the caller did not ask for them."""

    alive: bool
    claims: int
    version: int


def beat(link: Link, stores: Sequence[Store], life: int, count: bool, look: bool) -> tuple[list[Pulse], float]:
    """Renews the heartbeats on queues of one slot for life ms, and returns the pulses and Redis's time in seconds."""
    keys: list[Any] = []
    for s in stores:
        keys += [s.keys.heartbeat + s.worker, s.keys.processing + s.worker, s.keys.control]
    v = link.run('beat', keys, life, int(count), int(look))
    if not is_list(v) or len(v) != 2 + 3 * len(stores):
        raise ReplyError(f'beat: expected {2 + 3 * len(stores)} values, found {size_of(v)}')
    return [Pulse(v[i] == 1, v[i + 1], v[i + 2]) for i in range(2, len(v), 3)], v[0] + v[1] / 1e6


@dataclasses.dataclass
class Todo:
    """What there is to do on one queue. Times are in ms, negative for none."""

    pending: int
    due: int
    parked: int
    group: int
    suspects: int = 0  # also pending, but in a list of their own


def check(link: Link, stores: Sequence[Store]) -> list[Todo]:
    """Looks at queues of one slot."""
    keys: list[Any] = []
    for s in stores:
        k = s.keys
        keys += [k.list, k.scheduled, k.retry, k.parked, k.groups, k.suspects]
    v = link.run('check', keys)
    if not is_list(v) or len(v) != 5 * len(stores):
        raise ReplyError(f'check: expected {5 * len(stores)} values, found {size_of(v)}')
    return [Todo(*v[i : i + 5]) for i in range(0, len(v), 5)]


@dataclasses.dataclass
class Sight:
    """What a sweeper found on one queue."""

    mine: bool  # whether the sweeper holds the advisory lock
    workers: list[str]
    pending: int
    noti: int
    legacy: int


def survey(link: Link, stores: Sequence[Store], sweeper: str, lock: int) -> list[Sight]:
    """Looks at queues of one slot, and takes or renews their advisory locks for lock ms where it can."""
    keys: list[Any] = []
    for s in stores:
        k = s.keys
        keys += [k.sweeper, k.workers, k.list, k.noti, k.legacy]
    rows = link.run('survey', keys, sweeper, lock)
    if not is_list(rows) or len(rows) != len(stores):
        raise ReplyError(f'survey: expected {len(stores)} rows, found {size_of(rows)}')
    return [Sight(r[0] == 1, [text_of(w) for w in r[1]], r[2], r[3], r[4]) for r in rows]


def note_depths(link: Link, stores: Sequence[Store], now: float) -> list[int]:
    """Notes how many tasks are pending where nobody has done so for the ten seconds in which now is, Redis's time.

    Returns what it has noted, -1 where somebody else has.
    """
    keys: list[Any] = []
    for s in stores:
        k = s.keys
        keys += [k.depths, k.list, k.suspects, k.control]
    v = link.run('depth', keys, int(now), STATS_LIFE)
    if not is_list(v) or len(v) != len(stores):
        raise ReplyError(f'depth: expected {len(stores)} values, found {size_of(v)}')
    return v
