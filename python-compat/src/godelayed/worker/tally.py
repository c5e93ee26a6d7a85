"""Counts the tasks that have run, by second and function, until a heartbeat tells Redis."""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from ..errors import DelayedError
from .lane import Claim, Lane
from .link import Link, UnansweredError
from .sample import Sample

_MOST_SECONDS = 30  # kept apart; while Redis cannot be told, all later ones count as the last
_FUNCTIONS = 64  # of a queue that have metrics of their own: all others share those of ''
_PAGE = 100  # samples that one script writes
_TRIES = 5  # how often a sample is written that others write at the same time
_DAY = 24 * 3600


class _Grain(NamedTuple):
    """How finely metrics tell times apart: the mark in the key, and in seconds how long one hash lasts (0: for ever),
    how long one sample, and how long the hash is kept."""

    mark: str
    span: int
    step: int
    life: int


_GRAINS = (
    _Grain('s', 60, 1, 3660),
    _Grain('m', 3600, 60, 25 * 3600),
    _Grain('d', _DAY, _DAY, 90 * _DAY),
    _Grain('total', 0, 0, 90 * _DAY),
)


class _Page(NamedTuple):
    """Samples for one hash, by the number of the step and the function."""

    grain: _Grain
    hash: int
    samples: dict[tuple[int, str], Sample]

    def tell(self, link: Link, prefix: str) -> None:
        """Adds the samples to those that Redis has. What others write at the same time is not lost."""
        key = prefix + self.grain.mark + (str(self.hash) if self.grain.span else '')
        left, tries = dict(self.samples), 0
        while left:
            places = list(left)[:_PAGE]
            told = self._add(link, key, {place: left[place] for place in places})
            for place in told:
                del left[place]
            tries = 0 if told else tries + 1
            if tries == _TRIES:
                raise DelayedError(f'metrics of {prefix}: others write them too fast')

    def _add(self, link: Link, key: str, samples: dict[tuple[int, str], Sample]) -> list[tuple[int, str]]:
        """Adds samples, and returns those that nobody else has changed meanwhile, and for which there was room."""
        room = _FUNCTIONS * (self.grain.span // self.grain.step if self.grain.span else 1)
        fields = _fields(link, key, room, list(samples))
        olds = link.do('HMGET', key, *fields)
        args: list[Any] = [self.grain.life, room]
        for (field, places), old in zip(fields.items(), olds):
            total = Sample()
            total.merge_encoded(old or b'')  # what is no sample is replaced
            for place in places:
                total.merge(samples[place])
            args += [field, old or b'', total.encode()]
        answers = link.run('metrics', [key], *args)
        return [place for places, done in zip(fields.values(), answers) if done for place in places]


def _fields(link: Link, key: str, room: int, places: list[tuple[int, str]]) -> dict[str, list[tuple[int, str]]]:
    """Returns the fields of samples. Functions for which the hash has no room share one."""
    used = int(link.do('HLEN', key))
    known: set[str] = set()
    if used + len(places) > room:
        known = {field.decode(errors='replace') for field in link.do('HKEYS', key)}
    fields: dict[str, list[tuple[int, str]]] = {}
    for step, path in places:
        field = f'{step} {path}'
        if field not in known:
            used += 1
            if used > room:
                field = f'{step} '
        fields.setdefault(field, []).append((step, path))
    return fields


class Tally:
    """What has run on one lane. Threads may share it; only one of them tells."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._mu = threading.Lock()
        self._seconds: dict[int, dict[str, Sample]] = {}
        self._untold: list[_Page] = []  # that Redis has certainly not got

    def add(self, c: Claim, failed: bool, archived: bool) -> None:
        """Counts a task whose call has ended."""
        took = max(time.monotonic() - c.started, 0.0)
        end = self._lane.now()
        began = end - int(took * 1000)
        meta = c.message.meta
        since = max(meta.get('at', 0), meta.get('du', 0))
        with self._mu:
            second = end // 1000
            last = next(reversed(self._seconds), None)
            if last is not None and (second <= last or len(self._seconds) >= _MOST_SECONDS):
                second = last
            s = self._seconds.setdefault(second, {}).setdefault(c.function.path, Sample())
            s.runs += 1
            s.failed += failed
            s.archived += archived
            s.run.add(int(took * 1_000_000))
            if since:
                s.wait.add((began - since) * 1000)

    def tell(self, link: Link) -> None:
        """Tells Redis what was counted. What a lost answer leaves open is not told again, so that nothing counts
        twice."""
        with self._mu:
            seconds, self._seconds = self._seconds, {}
        pages, self._untold = self._untold + _pages(seconds), []
        for i, page in enumerate(pages):
            try:
                page.tell(link, self._lane.store.keys.metrics)
            except DelayedError as e:
                self._untold = pages[i + isinstance(e, UnansweredError) :][-4 * _MOST_SECONDS :]
                raise


def _pages(seconds: dict[int, dict[str, Sample]]) -> list[_Page]:
    """Returns the samples of all grains."""
    pages: dict[tuple[str, int], _Page] = {}
    for second, functions in seconds.items():
        for grain in _GRAINS:
            hash = second // grain.span if grain.span else 0
            step = second % grain.span // grain.step if grain.span else 0
            page = pages.setdefault((grain.mark, hash), _Page(grain, hash, {}))
            for path, sample in functions.items():
                page.samples.setdefault((step, path), Sample()).merge(sample)
    return list(pages.values())
