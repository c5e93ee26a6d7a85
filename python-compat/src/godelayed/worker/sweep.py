"""Takes over claims from dead workers, ours and legacy ones, and maintains the queues."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DelayedError
from ..info import lock_of, read
from . import info
from .contact import Contact
from .judge import DEATHS_LIFE, MAX_DEATHS, say_archived, too_large, verdict
from .lane import order_of
from .lines import Lines
from .link import Backoff, Complaints, Link, RefusedError, WrongTypeError, jitter
from .slot import Sight, survey
from .store import Death, Store, Verdict

logger = logging.getLogger('godelayed.worker')

_PAGE = 50  # claims that one script takes
_REPAIR_PAGE = 1000
_TRIM_EVERY = 8  # passes between two looks at the ages of archived and parked tasks
_TRIM_PAGE = 100
_PARDON_PAGE = 500
_LAPSE_PAGE = 250  # locks that one script looks at
_LAPSE_PAGES = 20  # of a pass, unless many of them have expired
_LEGACY_PAGE = 1000
_EXPIRY_MARGIN = 0.02  # seconds to add to the remaining time of a heartbeat, so that it has expired at the next look
_PATIENCE = 24 * 3600.0  # longest time between two passes, in seconds


class Sweeping:
    """The thread that sweeps queues of one slot. Any number of sweepers may run on one queue."""

    def __init__(
        self,
        stores: Sequence[Store],
        own: str,
        life: float,
        interval: float,
        contact: Contact,
        archive_max: int,
        archive_for: int,
    ) -> None:
        self.stores = stores
        self.own = own  # id of the worker in which it runs, which is alive
        self.certain = life / 4 + 0.5  # seconds between two looks that prove a worker dead
        self.interval = min(interval, life)
        self.contact = contact
        self.archive_max = archive_max
        self.archive_for = archive_for  # ms
        self.link = stores[0].link()
        # A heartbeat that is missing on another server, or on this one after a reconnect, says nothing of its worker.
        self.link.on_dial = contact.broken
        self.complaints = Complaints()
        self._server = b''
        self._missed: dict[tuple[Store, str], dict[str, float]] = {}  # when the heartbeat of a worker was first missing
        self._lapsed: dict[Store, str] = {}  # the cursor where to look for expired locks
        self._deficit: dict[Store, int] = {}  # notifications that were missing at the last pass
        self._passes = 0
        self._lines = Lines()
        self._next = 0.0  # seconds until the next pass, according to this one
        self._stop = threading.Event()

    def stop(self) -> None:
        self._stop.set()
        self.link.cut()

    def run(self) -> None:
        wait = Backoff()
        while not self._stop.is_set():
            self._next = jitter(self.interval, 0.2)
            try:
                fault = self.sweep()
                pause = self._next
            except DelayedError as e:
                if self._stop.is_set():
                    break
                self.link.hang_up()
                self.contact.broken()
                self._complain(e)
                pause = min(max(wait.next(), self.interval / 4), self.interval)
            else:
                if fault is None:
                    self.complaints.relief(logger, 'sweeping again')
                else:
                    self._complain(fault)
                wait.reset()
            self._lines.flush(all=False)
            self._stop.wait(min(pause, _PATIENCE))
        self._lines.flush()
        self.link.hang_up()

    def _complain(self, error: DelayedError) -> None:
        self.complaints.trouble(logger, 'cannot sweep; trying again', error)

    def sweep(self) -> WrongTypeError | None:
        """Looks at all queues once. One whose keys have the wrong type does not keep it from the others."""
        self.link.open()
        with self.contact.call():
            server = self._server_id()
        if server != self._server:
            if self._server:
                self.contact.broken()  # this may be another server, to which some heartbeats were never written
            self._server = server
        with self.contact.call():
            # The lock lasts longer than one pass of its holder, so that the sweepers do not take turns with it.
            sights, fault = survey(self.link, self.stores, self.own, int(self.interval * 1500))
        self._passes += 1
        for store, sight in zip(self.stores, sights):
            try:
                self._sweep_queue(store, sight)
            except WrongTypeError as e:
                fault = e
        return fault

    def _server_id(self) -> bytes:
        """Returns the id of the server's process; b'' where INFO is not allowed: then only a reconnect shows another
        server, which an unbroken connection proves as well."""
        try:
            answer = self.link.do('INFO', 'server')
        except RefusedError:
            return b''
        return next((line for line in bytes(answer).splitlines() if line.startswith(b'run_id:')), b'')

    def _sweep_queue(self, store: Store, sight: Sight) -> None:
        dead = self._judge(store, sight.workers)
        legacy = self._judge_legacy(store, sight.legacy)
        if not sight.mine:
            if dead or legacy:
                self._look_in(self.certain / 2)  # the holder of the lock may be among them
            return
        for worker in dead:
            n = self._sweep_hash(store, worker)
            if n:
                logger.warning('queue %s: gave back %d tasks of the dead worker %s', store.name, n, worker)
            store.forget(self.link, worker)
        for id in legacy:
            self._sweep_legacy(store, id)
        self._repair(store, sight.pending - sight.noti)
        if self._passes % _TRIM_EVERY == 1:
            self._trim(store)

    def _judge(self, store: Store, workers: list[str]) -> list[str]:
        """Returns those of the workers that are certainly dead."""
        others = [w for w in workers if w != self.own]
        missing: list[str] = []
        if others:
            with self.contact.call():
                left = store.lifetimes(self.link, others)
            missing = [w for w, s in zip(others, left) if s < 0]
            self._look_in(min((s for s in left if s >= 0), default=self._next) + _EXPIRY_MARGIN)
        return self._surely_dead(store, 'ours', missing)

    def _look_in(self, seconds: float) -> None:
        """Asks for another look after at most so many seconds."""
        self._next = min(self._next, max(seconds, _EXPIRY_MARGIN))

    def _judge_legacy(self, store: Store, total: int) -> list[str]:
        """Returns the ids of legacy workers that hold claims and are certainly dead, because their liveness keys are
        missing."""
        if total == 0:
            self._surely_dead(store, 'legacy', [])
            return []
        ids, _ = store.claim_tokens(self.link, store.keys.legacy, _LEGACY_PAGE)
        return self._surely_dead(store, 'legacy', [id for id in ids if not self._legacy_alive(id)])

    def _legacy_alive(self, id: str) -> bool:
        """Checks whether the key exists that a legacy worker's id names."""
        return bool(id) and bool(self.link.do('EXISTS', id))

    def _surely_dead(self, store: Store, kind: str, missing: list[str]) -> list[str]:
        """Notes whose heartbeats are missing now, and returns those that have been missing for long enough.

        A worker is dead if its heartbeat was missing at two looks, so far apart that a living worker would have
        registered again, and if contact with Redis was unbroken from before the first look to the second.
        """
        now = time.monotonic()
        since = self.contact.unbroken()
        before = self._missed.get((store, kind), {})
        after: dict[str, float] = {}
        dead: list[Any] = []
        for w in missing:
            first = before.get(w)
            if first is None or since is None or first < since:
                first = now  # what was seen before a break of contact does not count
            after[w] = first
            wait = self.certain - (now - first)
            if wait > 0 or since is None:
                self._look_in(wait)
            else:
                dead.append(w)
        self._missed[store, kind] = after
        return dead

    def _sweep_hash(self, store: Store, worker: str) -> int:
        """Takes all claims of a dead worker, page by page, and returns how many they were."""
        liveness, hash = store.keys.heartbeat + worker, store.keys.processing + worker
        death, taken = store.death_of(self.link, worker, hash), 0
        death.worker = worker
        while not self._stop.is_set():
            tokens, total = store.claim_tokens(self.link, hash, _PAGE)
            if total == 0:
                break
            death.sole = taken == 0 and total == 1
            # The last ones claimed come first, because each claim goes to the front of the queue.
            tokens.sort(key=order_of, reverse=True)
            while tokens:
                page, n = store.claims(self.link, hash, tokens)
                now = store.now()
                requeued, archived = self._take(
                    store, self.link, liveness, hash, [verdict(t, m, death, now) for t, m in page]
                )
                if requeued < 0:
                    return taken
                taken += requeued + archived
                tokens = tokens[n:]
        return taken

    def _take(self, store: Store, link: Link, liveness: str, hash: str, verdicts: list[Verdict]) -> tuple[int, int]:
        limits = (DEATHS_LIFE, MAX_DEATHS, self.archive_for, self.archive_max)
        for v in verdicts:
            if isinstance(v.message, int):
                say_archived(self._lines, store.name, v.id, 'too large', too_large(v.message))
        return store.sweep(link, liveness, hash, limits, verdicts)

    def _sweep_legacy(self, store: Store, id: str) -> None:
        """Takes the one claim of a dead legacy worker."""
        page, _ = store.claims(self.link, store.keys.legacy, [id])
        liveness = id or store.keys.heartbeat + 'legacy'  # for an empty id, a key that never exists
        requeued, archived = self._take(
            store,
            self.link,
            liveness,
            store.keys.legacy,
            [verdict(t, m, Death(certain=True), store.now()) for t, m in page],
        )
        if requeued > 0 or archived > 0:
            text = 'queue %s: gave back the task of the dead legacy worker %s'
            self._lines.say((store.name, 'legacy', ''), logging.WARNING, text, store.name, id)

    def _repair(self, store: Store, deficit: int) -> None:
        """Removes surplus notifications, and adds those that were missing at two passes: in between, workers that were
        woken had time to claim."""
        last, self._deficit[store] = self._deficit.get(store, 0), max(deficit, 0)
        if deficit < 0:
            store.repair(self.link, 0)
            return
        missing = min(deficit, last)
        while missing > 0:
            if store.repair(self.link, min(missing, _REPAIR_PAGE)) <= 0:
                return
            missing -= _REPAIR_PAGE

    def _trim(self, store: Store) -> None:
        """Deletes what is old enough, and archives tasks that were parked for too long."""
        if not store.ages(self.link):
            return
        while not self._stop.is_set():
            now = store.now()
            page = store.overdue_parked(self.link, now, _TRIM_PAGE)
            if not page:
                break
            messages = store.messages(self.link, [id for id, _ in page])  # of the first ones, if they are large
            tasks = [
                (id, info.encode(reason='parked too long', function=info.function_of(i), at=now), _lock_in(m))
                for (id, i), m in zip(page, messages)
            ]
            more = len(page) == _TRIM_PAGE or len(tasks) < len(page)
            if store.condemn(self.link, 'parked', self.archive_for, tasks) == 0 or not more:
                break
        self._lapse(store)
        steps: tuple[tuple[Callable[[Link, int], int], int], ...] = (
            (store.pardon, _PARDON_PAGE),
            (lambda link, n: store.trim(link, self.archive_max, n), _TRIM_PAGE),
            (store.expire, _TRIM_PAGE),
        )
        for delete, n in steps:
            while not self._stop.is_set() and delete(self.link, n) >= n:
                pass

    def _lapse(self, store: Store) -> None:
        """Deletes expired locks, from where the last pass has stopped. They only take memory: nobody heeds them."""
        pages = 0
        while not self._stop.is_set():
            pages += 1
            self._lapsed[store], looked, dropped = store.lapse(self.link, self._lapsed.get(store, '0'), _LAPSE_PAGE)
            if self._lapsed[store] == '0' or (pages >= _LAPSE_PAGES and dropped < looked // 4):
                return


def _lock_in(message: bytes | int | None) -> str:
    """Returns the lock that a message names, '' for none."""
    return lock_of(read(message)[1]) if isinstance(message, bytes) else ''


def sweeper_of(store: Store, limits: Sequence[int]) -> Callable[[Link, list[Verdict]], None]:
    """Returns what ends claims of a worker's own whose processes have died. limits are those of Store.sweep."""
    k = store.keys

    def sweep(link: Link, verdicts: list[Verdict]) -> None:
        # The liveness key never exists. The script must see that the claim still exists with these bytes.
        store.sweep(link, k.heartbeat + 'process', k.processing + store.worker, limits, verdicts)

    return sweep
