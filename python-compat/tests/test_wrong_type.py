"""A key of a queue that has the wrong type, because another program uses it, keeps no other queue waiting."""

import contextlib
import threading
import time

import pytest
from working import LIMIT, wait_for

import godelayed
from godelayed.registry import Registry
from godelayed.worker import Worker
from godelayed.worker.contact import Contact
from godelayed.worker.heartbeat import Heartbeat
from godelayed.worker.lane import Lane
from godelayed.worker.lines import Lines
from godelayed.worker.link import Link, RefusedError, Source, WrongTypeError
from godelayed.worker.mover import Mover
from godelayed.worker.store import Store
from godelayed.worker.sweep import Sweeping


@pytest.fixture
def wrong(redis):
    """Sets a key of the queue bad."""

    def make(key):
        redis.delete(key)
        redis.set(key, 'of another program')

    yield make
    for key in redis.keys('bad*'):
        redis.delete(key)


@pytest.mark.parametrize('key', ['bad', 'bad_noti', 'bad_workers', 'bad_processing', 'bad_processing:dead'])
def test_tasks_of_dead_workers_are_given_back_on_other_queues(redis, wrong, key):
    """That Redis refuses something on one queue is no break of contact, after which nobody would be found dead."""
    godelayed.Queue('q', redis).delay('t:f')
    redis.hset('q_processing:dead', '1-1', redis.lpop('q'))
    redis.delete('q_noti')
    redis.sadd('q_workers', 'dead')
    redis.sadd('bad_workers', 'dead')
    wrong(key)
    sweeping = Sweeping([Store(Source(redis), '', name, 'own') for name in ('bad', 'q')], 'own', 4, 1, Contact(4), 7, 8)
    sweeping.certain = 0.001
    faults = []
    wait_for(lambda: faults.append(sweeping.sweep()) or redis.llen('q') == 1, lambda: f'the task, found {faults}')
    assert sweeping.contact.unbroken() is not None
    assert isinstance(faults[-1], WrongTypeError)
    sweeping.link.hang_up()
    redis.delete('q', 'q_noti')


@pytest.mark.parametrize('key', ['bad', 'bad_scheduled', 'bad_noti', 'bad_parked'])
def test_due_tasks_of_other_queues_become_pending(redis, wrong, key):
    queues = [godelayed.Queue(name, redis) for name in ('bad', 'q')]
    for q in queues:
        q.options(countdown=0.001).delay('t:f')
    wrong(key)
    mover = Mover(
        [Lane(Store(Source(redis), '', q.name, 'me'), False) for q in queues],
        lambda *_: None,
        lambda *_: False,
        lambda: None,
        0,
        Lines(),
    )
    faults = []
    wait_for(lambda: faults.append(mover.look()[1]) or redis.llen('q') == 1, lambda: f'the task, found {faults}')
    assert all(isinstance(fault, WrongTypeError) for fault in faults)
    assert mover.idle is None  # it does not know
    assert mover.looks == len(faults)  # or a worker that stops when its queues are empty would look without a pause
    mover.link.hang_up()


def test_a_mover_beside_a_wrong_key_waits_for_what_is_due_next(redis, wrong, monkeypatch):
    """It would be late otherwise, by the time for which it waits after an error."""
    q = godelayed.Queue('q', redis)
    wrong('bad')
    monkeypatch.setattr('random.random', lambda: 0.5)
    lanes = [Lane(Store(Source(redis), '', name, 'me'), False) for name in ('bad', 'q')]
    mover, pauses = Mover(lanes, lambda *_: None, lambda *_: False, lambda: None, 0, Lines()), []

    def wait(pause):
        pauses.append(pause)
        if len(pauses) == 8:
            q.options(countdown=1.5).delay('t:f')
        elif len(pauses) == 9:
            mover.stop()

    monkeypatch.setattr(mover._poke, 'wait', wait)
    mover.run()
    assert pauses[:7] == [0.05 * 2**i for i in range(5)] + [1.0] * 2
    assert pauses[8] <= 1.5


def test_a_worker_takes_its_leave_from_other_queues(redis, wrong):
    w, errors = Worker(redis, ['bad', 'q'], registry=Registry(), processes=False), []

    def run():
        try:
            w.run()
        except godelayed.DelayedError as e:
            errors.append(str(e))

    t = threading.Thread(target=run)
    t.start()
    wait_for(lambda: redis.scard('q_workers') == redis.scard('bad_workers') == 1, 'the worker to register')
    wrong('bad_workers')
    w.stop()
    t.join(LIMIT)
    assert len(errors) == 1
    assert 'queue bad: ' in errors[0]
    assert redis.scard('q_workers') == 0


def test_a_worker_leaves_other_queues_where_ends_are_refused(redis, wrong, monkeypatch):
    """Redis answers, so that only the queue whose tasks have not ended keeps the worker."""
    started, go_on = threading.Event(), threading.Event()
    registry = Registry()

    @godelayed.task(path='t:f', registry=registry)
    def f():
        started.set()
        go_on.wait(LIMIT)

    monkeypatch.setattr('godelayed.worker.worker.CALL_TIMEOUT', 0.1)
    w, errors = Worker(redis, ['bad', 'q'], registry=registry, processes=False, cancel_grace=0.1), []

    def run():
        try:
            w.run()
        except godelayed.DelayedError as e:
            errors.append(str(e))

    t = threading.Thread(target=run)
    t.start()
    godelayed.Queue('bad', redis).delay('t:f')
    assert started.wait(LIMIT)
    wrong(f'bad_processing:{w.id}')
    w.stop()
    go_on.set()
    t.join(LIMIT)
    assert len(errors) == 1
    assert 'not confirmed how 1 tasks ended' in errors[0]
    assert redis.scard('bad_workers') == 1
    assert redis.scard('q_workers') == 0


def test_a_worker_that_is_refused_keeps_contact(redis, wrong):
    """Otherwise its sweeper would find nobody dead for as long as the key is wrong."""
    lane, contact = Lane(Store(Source(redis), '', 'bad', 'w'), False), Contact(15)
    beats = Heartbeat([lane], 15, 'v', contact, lambda: None)
    assert beats.beat() is None
    wrong('bad_workers')
    redis.delete('bad_worker:w')  # as if it had expired
    assert isinstance(beats.beat(), WrongTypeError)
    assert contact.unbroken() is None
    assert isinstance(beats.beat(), WrongTypeError)
    assert contact.unbroken() is not None
    beats.link.hang_up()


def test_a_refused_queue_keeps_no_places(redis, wrong):
    """Its tasks that have not started go back, and nothing is claimed there."""
    registry = Registry()

    @godelayed.task(path='t:f', registry=registry)
    def f():
        pass

    w = Worker(redis, ['bad', 'q'], registry=registry, processes=False)
    bad, q = w._lanes
    beats, back = w._slots[0].heartbeat, []
    assert beats.beat() is None
    w._executors.take_back = lambda lane: back.append(lane.name) or []
    redis.delete('bad_worker:' + w.id)
    wrong('bad_workers')
    assert isinstance(beats.beat(), WrongTypeError)
    assert back == ['bad']
    assert (bad.fresh(15), q.fresh(15)) == (False, True)
    beats.link.hang_up()
    redis.delete('q_workers', 'q_worker:' + w.id)


@pytest.mark.parametrize('key', ['bad_control', 'bad_processing:w'])
def test_unknown_claims_of_other_queues_are_given_back(redis, wrong, key):
    """Their replies were lost. No sweeper takes them, because the worker lives."""
    lanes = [Lane(Store(Source(redis), '', name, 'w'), False) for name in ('bad', 'q')]
    beats = Heartbeat(lanes, 15, 'v', Contact(15), lambda: None)
    assert beats.beat() is None
    wrong(key)
    redis.hset('q_processing:w', '1-1', 'm')
    redis.hset('q_control', 'version', 7)
    looked = []
    lanes[1].look = lambda: looked.append('q')
    lanes[1]._next, lanes[1].unclear = 1, time.monotonic()
    assert beats.beat() is None
    assert redis.lrange('q', 0, -1) == [b'm']
    assert looked == ['q']
    beats.link.hang_up()
    redis.delete('q', 'q_noti', 'q_control', 'q_workers', 'q_worker:w')


def test_metrics_of_other_queues_are_told(redis, wrong):
    """Nothing depends on metrics: the worker goes on."""
    registry, ran = Registry(), []

    @godelayed.task(path='t:f', registry=registry)
    def f():
        ran.append(1)

    wrong('bad_metrics:total')
    w, errors = Worker(redis, ['bad', 'q'], registry=registry, processes=False), []

    def run():
        try:
            w.run()
        except BaseException as e:
            errors.append(e)

    t = threading.Thread(target=run)
    t.start()
    for _ in range(2):  # with a heartbeat in between
        done = len(ran)
        for name in ('bad', 'q'):
            godelayed.Queue(name, redis).delay('t:f')
        wait_for(lambda done=done: len(ran) == done + 2, 'tasks of both queues')
        w._slots[0].heartbeat.now()
        wait_for(lambda: not any(tally._seconds for tally in w._tallies.values()), 'a heartbeat to tell it')
    for name in ('bad', 'q'):
        godelayed.Queue(name, redis).delay('t:f')
    wait_for(lambda: len(ran) == 6, 'tasks of both queues')
    w.stop()
    t.join(LIMIT)
    assert errors == []
    assert w.stop_reason != 'fault'
    assert redis.exists('q_metrics:total') == 1


def test_functions_are_published_when_the_key_is_put_right(redis, wrong):
    w = Worker(redis, ['bad'], registry=Registry(), processes=False)
    s = w._slots[0]
    assert s.heartbeat.beat() is None
    wrong('bad_functions')
    with contextlib.closing(Link(Source(redis))) as link:
        s.teller.tells[0](link)
        assert redis.type('bad_functions') == b'string'
        redis.delete('bad_functions')
        s.teller.tells[0](link)
    assert redis.hexists('bad_functions', w.id)
    s.heartbeat.link.hang_up()


def test_heartbeats_go_on_without_the_command_type(redis, wrong):
    """A user may lack the right to call it."""
    store = Store(Source(redis), '', 'bad', 'w')
    beats = Heartbeat([Lane(store, False)], 15, 'v', Contact(15), lambda: None)
    assert beats.beat() is None
    wrong('bad_control')
    run = beats.link.run

    def without_type(name, keys, *args):
        if args[3:] == (1,):
            raise RefusedError('ACL failure in script')
        return run(name, keys, *args)

    beats.link.run = without_type
    beats._beats = 0  # it looks at the control hash
    assert beats.beat() is None
    assert redis.pttl('bad_worker:w') > 14_000
    beats.link.hang_up()
