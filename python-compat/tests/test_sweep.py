"""What a sweeper does besides finding dead workers: taking over claims, repairing notify lists, deleting old things."""

import time
import types

import msgpack
import pytest

from godelayed.keys import Keys
from godelayed.worker import sweep
from godelayed.worker.contact import Contact
from godelayed.worker.link import Source, UnansweredError
from godelayed.worker.slot import Sight
from godelayed.worker.store import Death, Store
from godelayed.worker.sweep import Sweeping


class Queue:
    """A store that records its calls."""

    name = 'q'

    def __init__(self):
        self.keys, self.asked, self.dead = Keys('q'), [], []

    def link(self):
        return types.SimpleNamespace(hang_up=lambda: None, open=lambda: False, cut=lambda: None)

    def now(self):
        return 5

    def repair(self, link, n):
        self.asked.append(('repair', n))
        return n

    def forget(self, link, worker):
        self.asked.append(('forget', worker))


@pytest.fixture
def sweeping():
    return Sweeping([Queue()], 'own', 4.0, 1.0, Contact(4.0), 7, 8)


# The notify list.


def test_notifications_that_are_missing_twice_are_added(sweeping):
    """In between, workers that were woken had time to claim."""
    (q,) = sweeping.stores
    for deficit in (5, 3, 2500, 2600, 0, 4):
        sweeping._repair(q, deficit)
    assert q.asked == [('repair', 3), ('repair', 3), ('repair', 1000), ('repair', 1000), ('repair', 500)]


def test_notifications_that_are_too_many_are_removed_at_once(sweeping):
    (q,) = sweeping.stores
    sweeping._repair(q, 5)
    sweeping._repair(q, -5)
    sweeping._repair(q, 5)  # that was not missing before
    assert q.asked == [('repair', 0)]


def test_a_queue_that_others_have_mended_is_left(sweeping):
    (q,) = sweeping.stores
    q.repair = lambda link, n: q.asked.append(n) or 0
    sweeping._repair(q, 5000)
    sweeping._repair(q, 5000)
    assert q.asked == [1000]


def test_repair_against_redis(redis):
    redis.rpush('q', 'a', 'b', 'c')
    redis.rpush('q_noti', *'123456')
    store = Store(Source(redis), '', 'q', 'w')
    link = store.link()
    store.repair(link, 0)
    assert redis.llen('q_noti') == 3
    redis.delete('q_noti')
    assert store.repair(link, 2) == 2
    assert redis.llen('q_noti') == 2
    assert store.repair(link, 10) == 1
    assert store.repair(link, 10) == 0
    link.hang_up()


# Legacy workers.


def test_a_legacy_worker_is_missed_anew_after_its_claims_were_gone(sweeping, monkeypatch):
    """It may have ended its task and claimed another one, between two looks at which its key was missing."""
    (q,) = sweeping.stores
    clock = types.SimpleNamespace(monotonic=lambda: clock.now, now=time.monotonic() + 1)
    monkeypatch.setattr(sweep, 'time', clock)
    monkeypatch.setattr(sweeping, '_legacy_alive', lambda id: False)
    q.claim_tokens = lambda *_: (['l'], 1)
    with sweeping.contact.call():
        pass
    dead = []
    for claims in (1, 0, 1, 1):
        dead.append(sweeping._judge_legacy(q, claims))
        clock.now += sweeping.certain
    assert dead == [[], [], [], ['l']]


# Claims.


@pytest.mark.parametrize('mine', [True, False])
def test_the_dead_are_left_to_whoever_has_the_lock(sweeping, monkeypatch, mine):
    """The holder of the lock may be among the dead, so the next look is soon."""
    (q,) = sweeping.stores
    monkeypatch.setattr(sweeping, '_judge', lambda *_: ['w'])
    monkeypatch.setattr(sweeping, '_judge_legacy', lambda *_: [])
    monkeypatch.setattr(sweeping, '_sweep_hash', lambda store, worker: q.asked.append(('sweep', worker)))
    sweeping._next = 1.0
    sweeping._sweep_queue(q, Sight(mine, ['w'], 0, 0, 0))
    assert q.asked == ([('sweep', 'w'), ('forget', 'w')] if mine else [])
    assert sweeping._next == (1.0 if mine else 0.75)


def test_the_last_claim_of_many_has_not_died_alone(sweeping):
    """A claim is alone only if the worker had no other: what earlier pages took was in its hands, too."""
    (q,) = sweeping.stores
    held, verdicts = [f'1-{i}' for i in range(1, 4)], []
    q.death_of = lambda *_: Death()
    q.claim_tokens = lambda *_: (held[-2:], len(held))
    q.claims = lambda link, hash, tokens: ([(t, msgpack.packb(['a:b'])) for t in tokens], len(tokens))

    def take(link, liveness, hash, limits, page):
        for v in page:
            held.remove(v.token)
            verdicts.append((v.token, v.action))
        return len(page), 0

    q.sweep = take
    assert sweeping._sweep_hash(q, 'w') == 3
    assert verdicts == [('1-3', 'count'), ('1-2', 'count'), ('1-1', 'count')]
    held, verdicts = ['1-1'], []
    assert sweeping._sweep_hash(q, 'w') == 1
    assert verdicts == [('1-1', 'alone')]


def test_a_worker_that_lives_after_all_keeps_its_claims(sweeping):
    (q,) = sweeping.stores
    q.death_of = lambda *_: Death()
    q.claim_tokens = lambda *_: (['1-1', '1-2'], 2)
    q.claims = lambda link, hash, tokens: ([(t, msgpack.packb(['a:b'])) for t in tokens], len(tokens))
    taken = []
    q.sweep = lambda link, liveness, hash, limits, verdicts: taken.append((liveness, hash, limits)) or (-1, 0)
    assert sweeping._sweep_hash(q, 'w') == 0
    assert taken == [('q_worker:w', 'q_processing:w', (72 * 3600, 3, 8, 7))]


@pytest.mark.parametrize(
    ('notes', 'death'),
    [
        ({}, Death()),
        ({'stopped': '1'}, Death(stopped=True)),
        ({'alone': '1-1'}, Death(alone='1-1')),
        ({'alone': '1-7'}, Death()),  # that claim has ended
        ({'alone': '1-1', 'stopped': '1'}, Death(stopped=True, alone='1-1')),
    ],
)
def test_what_a_dead_worker_has_noted(redis, notes, death):
    redis.hset('q_processing:w', '1-1', 'message')
    if notes:
        redis.hset('q_claims:w', mapping=notes)
    store = Store(Source(redis), '', 'q', 'sweeper')
    link = store.link()
    assert store.death_of(link, 'w', 'q_processing:w') == death
    link.hang_up()


def test_a_large_message_of_a_dead_worker_is_logged(sweeping, caplog):
    (q,) = sweeping.stores
    q.death_of = lambda *_: Death()
    pages = [(['1-1'], 1), ([], 0)]
    q.claim_tokens = lambda *_: pages.pop(0)
    q.claims = lambda *_: ([('1-1', 5_000_000)], 1)
    q.sweep = lambda *_: (0, 1)
    assert sweeping._sweep_hash(q, 'w') == 1
    assert 'expected a message of at most 1052672 bytes, found one of 5000000' in caplog.text


# Errors.


def test_a_sweeper_that_could_not_ask_trusts_nothing_that_it_saw_before(sweeping, monkeypatch):
    """Workers whose heartbeats were missing may have been unable to renew them because of the same error."""
    pauses, looks = [], []
    with sweeping.contact.call():
        pass

    def look():
        looks.append(sweeping.contact.unbroken() is not None)
        if len(looks) == 1:
            raise UnansweredError('away')

    def wait(pause):
        pauses.append(pause)
        if len(pauses) == 2:
            sweeping._stop.is_set = lambda: True

    monkeypatch.setattr(sweeping, 'sweep', look)
    sweeping._stop = types.SimpleNamespace(is_set=lambda: False, wait=wait)
    sweeping.run()
    assert looks == [True, False]
    assert 0.25 <= pauses[0] <= 1.0
    assert 0.8 <= pauses[1] <= 1.2


# Old things.


@pytest.fixture
def old():
    """A store in which each kind of thing is too old a given number of times, and the calls that deleted them."""

    def make(parked=0, **left):
        q = Queue()
        q.ages = lambda _: True
        pages = [[(f'{i}', None) for i in range(n)] for n in (*[100] * (parked // 100), parked % 100)]
        q.overdue_parked = lambda link, now, n: (q.asked.append(('overdue', now, n)), pages.pop(0))[1]
        q.messages = lambda link, ids: [None] * len(ids)
        q.condemn = lambda link, shelf, keep, tasks: q.asked.append((shelf, keep, len(tasks))) or len(tasks)
        q.lapse = lambda link, cursor, n: q.asked.append(('lapse', cursor, n)) or ('0', n, 0)

        def delete(name):
            def call(link, *args):
                n = min(left.get(name, 0), args[-1])
                left[name] = left.get(name, 0) - n
                q.asked.append((name, *args))
                return n

            return call

        for name in ('pardon', 'trim', 'expire'):
            setattr(q, name, delete(name))
        return q

    return make


def test_all_that_is_old_goes(sweeping, old):
    q = old(parked=150, trim=150, expire=100)
    sweeping._trim(q)
    assert q.asked == [
        ('overdue', 5, 100),
        ('parked', 8, 100),
        ('overdue', 5, 100),
        ('parked', 8, 50),
        ('lapse', '0', 250),
        ('pardon', 500),
        ('trim', 7, 100),
        ('trim', 7, 100),
        ('expire', 100),
        ('expire', 100),
    ]


def test_what_was_parked_too_long_frees_its_lock(sweeping, old):
    """A call reads as many messages as it may; the next one goes on with the rest."""
    q, filed = old(), []
    ids = ['a', 'b', 'c']
    held = {'a': msgpack.packb(['m:f', [], {}, [], {'uk': 'k:a'}]), 'b': 500 << 20}
    q.overdue_parked = lambda *_: [(id, None) for id in ids]
    q.messages = lambda link, ids: [held.get(id) for id in ids[:2]]

    def condemn(link, shelf, keep, tasks):
        filed.append([(id, lock) for id, _, lock in tasks])
        for id, _, _ in tasks:
            ids.remove(id)
        return len(tasks)

    q.condemn = condemn
    sweeping._trim(q)
    assert filed == [[('a', 'k:a'), ('b', '')], [('c', '')]]


@pytest.mark.parametrize(
    ('pages', 'looks', 'left'),
    [
        ([('7', 250, 0), ('0', 40, 0)], ['0', '7'], '0'),  # the whole hash
        ([(str(n + 1), 250, 61) for n in range(30)], [str(n) for n in range(20)], '20'),  # enough for this pass
        ([(str(n + 1), 250, 62) for n in range(25)] + [('99', 250, 0)], [str(n) for n in range(26)], '99'),
    ],
)
def test_a_pass_looks_at_some_locks_and_at_more_while_many_have_expired(sweeping, old, pages, looks, left):
    q, asked = old(), []
    q.lapse = lambda link, cursor, n: asked.append(cursor) or pages.pop(0)
    sweeping._lapse(q)
    assert asked == looks
    q.lapse = lambda link, cursor, n: asked.append(cursor) or ('0', 1, 0)
    sweeping._lapse(q)
    assert asked[-1] == left  # goes on where it has stopped


def test_what_is_old_is_looked_for_at_the_first_pass_and_then_seldom(sweeping, monkeypatch):
    (q,) = sweeping.stores
    trimmed = []
    sweeping.link.do = lambda *_: b'run_id:a\r\n'
    monkeypatch.setattr(sweeping, '_trim', lambda _: trimmed.append(sweeping._passes))
    asked = []
    sights = [Sight(True, ['own'], 0, 0, 0)]
    monkeypatch.setattr(sweep, 'survey', lambda link, stores, own, lock: asked.append((own, lock)) or (sights, None))
    for _ in range(18):
        sweeping.sweep()
    assert trimmed == [1, 9, 17]
    assert set(asked) == {('own', 1500)}  # ms: longer than one pass
