"""Claims, from the reply that brings them to the answer that ends them: what the worker does when a reply is lost, and
in which order."""

import time

import msgpack
import pytest

from godelayed.worker import finish
from godelayed.worker.executors import Executors
from godelayed.worker.finish import (
    ARCHIVE,
    CANCEL,
    COMPLETE,
    DEATH,
    DEFER,
    EXPIRED,
    FAILED,
    FORWARD,
    PARK,
    RELEASE,
    RETRY,
    SNOOZE,
    End,
    Finisher,
)
from godelayed.worker.link import RefusedError, UnansweredError, UnreachableError
from godelayed.worker.message import Message
from godelayed.worker.store import Haul


@pytest.fixture
def finisher(lane):
    lane.finisher = Finisher(lane, Executors(1, None, 15.0), None, 10, 10)
    return lane.finisher


# Claiming.


@pytest.mark.parametrize('answer', [UnansweredError('lost'), UnreachableError('away')])
def test_a_queue_whose_claim_failed_is_claimed_from_again(worker, answer):
    """The notification that led to the claim is used up."""
    f = worker('q')._fetcher
    (lane,) = f.lanes
    lane.hot = False

    def claim(*_):
        raise answer

    lane.claim = claim
    assert f.claim(lane, 1, 1) == 0
    assert lane.hot
    assert f.waiters[0].until > time.monotonic()


def test_a_claim_that_finds_no_heartbeat_asks_for_one(worker):
    f = worker('q')._fetcher
    (lane,) = f.lanes
    asked = []
    lane.claim, lane.beat = lambda *_: (Haul(0), []), lambda: asked.append(lane)
    assert f.claim(lane, 1, 0) == 0
    assert asked == [lane]
    assert f.waiters[0].until > time.monotonic()  # or it would ask again and again


@pytest.mark.parametrize(('hot', 'parked', 'found'), [(False, [], False), (True, [], True), (False, ['x'], True)])
def test_parked_tasks_are_claimed_though_nothing_is_pending(worker, hot, parked, found):
    f = worker('a', 'b')._fetcher
    for lane in f.lanes:
        lane.hot, lane.confirmed = False, (time.monotonic(), time.time())
    f.lanes[1].hot, f.lanes[1].parked = hot, parked
    assert f.any_hot()[0] == found


@pytest.mark.parametrize(('known', 'looks'), [(4, 1), (5, 0)])
@pytest.mark.parametrize('status', [1, 0])
def test_a_claim_tells_that_the_control_hash_has_changed(lane, known, status, looks):
    """A claim that brings nothing shows the change as well; a refused one does not return the version."""
    seen = []
    lane.store.claim = lambda *_: Haul(status, 0, None, 5, [])
    lane.version, lane.look = known, lambda: seen.append(1)
    lane.claim(None, 1, 0, False, [])
    assert len(seen) == looks * status


def test_claims_that_may_be_older_than_a_registration_lead_to_a_heartbeat(lane):
    """The heartbeat gives them back."""
    asked = []
    lane.beat = lambda: asked.append(1)

    def claim(*_):
        lane.register()
        return Haul(1, 0, None, 0, [b'a'])

    lane.version, lane.store.claim = 0, claim
    assert lane.claim(None, 1, 0, False, [])[1] == []
    assert asked == [1]
    assert lane.count() == (2, False, True)


def test_a_task_that_is_cancelled_before_it_begins_is_told(lane):
    c, other = lane.open()
    told = []
    lane.cancel(c)
    assert lane.begin(c, told.append)
    assert lane.begin(other, told.append)
    assert told == ['canceled']


@pytest.mark.parametrize('order', ['pause', 'quiet'])
def test_what_waits_is_given_back_when_no_more_is_to_start(worker, lane, order):
    w = worker('q')
    back = []
    w._intake.give_back = back.extend
    w._executors.add(lane.open())
    getattr(w, order)()
    assert back == lane.open()
    assert w._executors.start() is None


# Ending.


@pytest.mark.parametrize('done', [True, False])
def test_the_log_says_once_that_redis_cannot_be_told_how_tasks_ended(lane, finisher, caplog, done):
    caplog.set_level('INFO')
    answers = [UnansweredError('lost'), UnansweredError('lost'), None if done else [1]]

    def answer(*_, **__):
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    lane.store.ack = lane.store.release = answer
    if done:
        lane.done.append(lane.open()[0])
    else:
        finisher.add(End(lane.open()[0], RELEASE))
    assert [finisher.work() for _ in range(4)] == [(True, False)] * 2 + [(True, True), (False, True)]
    assert [r.getMessage() for r in caplog.records] == [
        'queue q: cannot tell Redis how tasks ended; trying again: lost',
        'queue q: Redis has been told how tasks ended',
    ]


def test_what_is_given_back_stands_as_it_did(lane, finisher, monkeypatch):
    """Each call puts its tasks in front of all others."""
    monkeypatch.setattr(finish, 'MAX_TOKENS', 2)
    lane.store.claim = lambda *_: Haul(1, 0, None, 0, [b'a'] * 5)
    ends = [End(c, RELEASE) for c in lane.claim(None, 5, 0, False, [])[1]]
    queue = []
    finisher._tell = lambda kind, group: queue.__setitem__(slice(0, 0), group) or []
    assert finisher._flush(ends) == []
    assert queue == ends


@pytest.mark.parametrize(
    ('kind', 'forgets'), [(RETRY, True), (PARK, True), (RELEASE, True), (COMPLETE, False), (CANCEL, False)]
)
def test_what_a_task_has_reported_does_not_outlast_it(lane, finisher, kind, forgets):
    """The report is deleted before the claim ends. For a completed or cancelled task, the info that is kept replaces
    it."""
    c, other = lane.open()
    c.message, c.report = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x'}])), (1, 2, '')
    done = []
    lane.store.progress = lambda link, token, id, report: done.append((token, id, report))
    finisher._call = lambda kind, batches, group: done.append('ended') or [1] * len(group)
    assert finisher._tell(kind, [End(c, kind), End(other, kind)]) == []
    assert done == [*([('1-1', 'x', b'')] if forgets else []), 'ended']


@pytest.mark.parametrize(('error', 'lost'), [(UnansweredError('lost'), 0), (UnreachableError('away'), 2)])
def test_claims_that_may_have_been_acknowledged_are_not_lost_when_that_is_repeated(lane, finisher, error, lost):
    claims = lane.open()
    for c in claims:
        c.message = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x'}]))
    lane.finished(claims)
    finisher.unanswered(claims, error)
    assert finisher._signal.is_set()  # no further claim may come that acknowledges them
    assert lane.done == claims
    assert lane.finished(claims) == [1]  # the batch is told to Redis again
    finisher.acknowledged(claims, [0, 0])
    assert finisher._lost == lost
    assert lane.known == 0


def test_claims_that_another_worker_has_are_counted_and_told_of(lane, finisher, caplog):
    """The answer to their end is 0 then: the task may run twice."""
    first, second = lane.open()
    for c in (first, second):
        c.message = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x'}]))
    lost = []
    finisher.on_lost = lost.append
    finisher._call = lambda *_: [1, 0]
    assert finisher._tell(RETRY, [End(first, RETRY), End(second, RETRY)]) == []
    assert (lost, finisher._lost, lane.known) == ([second], 1, 0)
    assert 'm:f (x): the claim was lost before the task ended; another worker may run it again' in caplog.text


@pytest.mark.parametrize('kind', [RELEASE, DEFER, DEATH])
def test_what_was_given_back_already_is_not_lost(lane, finisher, kind):
    finisher._call = lambda *_: [0, 0]
    assert finisher._tell(kind, [End(c, kind) for c in lane.open()]) == []
    assert (finisher._lost, lane.known) == (0, 0)


def test_a_task_that_is_cancelled_just_now_ends_as_cancelled(lane, finisher):
    """The answer is 2 if the claim still exists because its task must not be stored."""
    c, _ = lane.open()
    finisher.canceled = lambda c: End(c, CANCEL)
    finisher._call = lambda *_: [2]
    assert finisher._tell(RETRY, [End(c, RETRY)]) == []
    assert [(e.claim, e.kind) for e in finisher._pending] == [(c, CANCEL)]
    assert not c.settled
    assert lane.finished([c]) == []  # the other claim of the batch is still open


@pytest.mark.parametrize(
    ('kind', 'counted', 'told'),
    [
        (ARCHIVE, FAILED, ('archived', 7, ('processed', 'failed', 'archived'), 8)),
        (ARCHIVE, EXPIRED, ('archived', 7, ('expired', 'archived'), 8)),
        (RETRY, FAILED, ('retry', 0, ('processed', 'failed', 'retried'), 5)),
        (SNOOZE, (), ('scheduled', 0, ('snoozed',), 5)),
        (PARK, (), ('parked', 0, ('parked',), 5)),
    ],
)
def test_how_a_task_is_filed(lane, kind, counted, told):
    """Only the archive is limited by number and time, as the worker's settings say."""
    c, _ = lane.open()
    c.message = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x', 'kr': 1}]))
    f = Finisher(lane, Executors(1, None, 15.0), None, 7, 8)
    found = []

    def shelve(link, batches, shelf, most, counters, tasks):
        (t,) = tasks
        found.append((shelf, most, tuple(counters), t.wait))
        assert (t.claim.token, t.id, t.message, t.info) == ('1-1', 'x', b'm', b'i')
        assert t.awaited == (kind == ARCHIVE)
        return [1]

    lane.store.shelve = shelve
    assert f._tell(kind, [End(c, kind, counted, 5, 'x', b'm', b'i')]) == []
    assert found == [told]


def test_what_is_told_is_split_by_size_and_number(lane, finisher, monkeypatch):
    """A call must neither block Redis for long nor exceed its timeout."""
    c, _ = lane.open()
    c.raw = b'x' * (1 << 18)
    groups = []
    finisher._tell = lambda kind, group: groups.append(len(group)) or []
    for kind in (RETRY, FORWARD):
        finisher._flush([End(c, kind) for _ in range(9)])
    c.raw = b'x'
    finisher._flush([End(c, RETRY) for _ in range(250)])
    finisher._flush([End(c, FORWARD) for _ in range(1100)])
    assert groups == [4, 4, 1, 4, 4, 1, 100, 100, 50, 500, 500, 100]


@pytest.mark.parametrize(
    ('kind', 'error', 'calls'),
    [
        (RETRY, UnansweredError('?'), 1),
        (RETRY, UnreachableError('?'), 1),
        (RETRY, RefusedError('?'), 3),
        (FORWARD, UnansweredError('?'), 1),
        (FORWARD, RefusedError('?'), 1),
        (RELEASE, RefusedError('?'), 1),
    ],
)
def test_what_is_told_after_a_call_has_failed(lane, finisher, monkeypatch, kind, error, calls):
    """Nothing if Redis does not answer, because a worker that stops could not wait; and nothing that would overtake."""
    c, _ = lane.open()
    c.raw = b'x' * (1 << 20)
    told = []

    def call(kind, batches, group):
        told.append(group)
        raise error

    monkeypatch.setattr(finisher, '_call', call)
    ends = [End(c, kind) for _ in range(3)]
    finisher.add(*ends)
    assert finisher.work() == (True, False)
    assert len(told) == calls
    assert all(a is b for a, b in zip(finisher._pending, ends, strict=True))
    assert finisher.waiting() == 3


def test_ends_of_a_call_under_way_are_waiting(lane, finisher, monkeypatch):
    """Otherwise a worker that stops meanwhile would say that it has told Redis everything."""
    c, other = lane.open()
    finisher.executors.put_done(lane, [other])
    seen = []
    monkeypatch.setattr(lane.store, 'ack', lambda *_: seen.append(finisher.waiting()) or [1], raising=False)
    monkeypatch.setattr(finisher, '_call', lambda *_: seen.append(finisher.waiting()) or [1])
    finisher.add(End(c, RETRY))
    assert finisher.work() == (True, True)
    assert (seen, finisher.waiting()) == ([2, 1], 0)


def test_a_worker_that_stops_gives_back_claims_that_it_does_not_know(redis, worker, q):
    """Otherwise they would wait until its heartbeat expires."""
    w = worker('q')
    w._source.client, (lane,) = redis, w._lanes
    lane.confirmed = (0.0, 0.0)
    redis.sadd('q_workers', w.id)
    redis.hset(f'q_processing:{w.id}', mapping={f'{i}-1': f'{i}' for i in range(1, 4)})
    w._unregister()
    assert sorted(redis.lrange('q', 0, -1)) == [b'1', b'2', b'3']
    assert not redis.exists('q_workers', f'q_processing:{w.id}')


def test_a_task_that_redis_knows_as_cancelled_when_it_ends_is_cancelled(worker, lane):
    """Redis answers 2 if the task of a call was cancelled while the worker told it how the task ended."""
    w, (c, _) = worker('q'), lane.open()
    c.message = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x'}]))
    c.lane.store.now = lambda: 5
    f = w._lanes[0].finisher
    f.lane = lane
    f._call = lambda *_: [2]
    assert f._tell(RETRY, [End(c, RETRY)]) == []
    assert [(e.claim, e.kind, e.certain) for e in f._pending] == [(c, CANCEL, False)]
