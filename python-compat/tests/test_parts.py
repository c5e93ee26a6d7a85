"""Parts of the worker, each alone: what they clean up, delete and keep in rare cases."""

import logging
import types

import msgpack
import pytest
import redis as redis_py

from godelayed import ArgumentsError, current
from godelayed.context import Context
from godelayed.keys import Keys
from godelayed.registry import Function, Registry
from godelayed.text import OneLine
from godelayed.worker import calling, contact, info
from godelayed.worker.executors import Executors
from godelayed.worker.finish import ARCHIVE, CANCEL, EXPIRED, FAILED, RELEASE, RETRY, End, Finisher, _alike
from godelayed.worker.follow import Follower
from godelayed.worker.judge import Ended, Judge, Rules
from godelayed.worker.lane import Lane
from godelayed.worker.link import Link, Source, UnansweredError, UnreachableError
from godelayed.worker.message import Message
from godelayed.worker.mover import Mover
from godelayed.worker.report import Reporter
from godelayed.worker.runs import Runs
from godelayed.worker.store import Acked, Death, Haul, Store
from godelayed.worker.sweep import Sweeping

# Fetching.


def test_a_notification_may_be_lost_with_a_wait(worker):
    f = worker('a', 'b')._fetcher
    for lane in f.lanes:
        lane.hot = False
    f._handle(f.waiters[0], None, UnansweredError('lost'))
    assert [lane.hot for lane in f.lanes] == [True, True]


@pytest.mark.parametrize(('answer', 'parked'), [(Haul(1, 2), ['c']), (UnreachableError('away'), ['a', 'b', 'c'])])
def test_parked_tasks_that_others_have_taken_are_not_asked_for_again(worker, answer, parked):
    """left is how many of the ids Redis has looked at, whatever happened to their tasks."""
    f = worker('q')._fetcher
    (lane,) = f.lanes

    def claim(*_):
        if isinstance(answer, Exception):
            raise answer
        return answer, []

    lane.claim = claim
    assert f.claim(lane, 5, 0, parked=['a', 'b', 'c']) == 0
    assert lane.parked == parked
    assert f.executors.coming == 0


def test_go_tasks_are_not_handed_on_to_the_queue_where_they_are(worker):
    """Otherwise a worker that serves the queue of Go workers too would park them and find them there for ever."""
    w = worker('q', 'go', go_queue='go')
    note = msgpack.packb({'function': 'example.com/app.F'})
    assert [w._intake.can_run(lane, note) for lane in w._lanes] == [True, False]


@pytest.mark.parametrize(('by_control', 'weights'), [((0, 0), [3, 1]), ((7, 0), [7, 1]), ((0, 5), [3, 5])])
def test_a_weight_that_a_queue_was_told_counts_before_that_of_the_worker(worker, monkeypatch, by_control, weights):
    f = worker({'a': 3, 'b': 1})._fetcher
    for lane, weight in zip(f.lanes, by_control):
        lane.weight = weight
    seen = []
    monkeypatch.setattr('random.choices', lambda population, weights: seen.append(weights) or [0])
    assert f._arranged() == f.lanes
    assert seen == [weights, weights[1:]]


@pytest.mark.parametrize('of_one_queue', [False, True])
def test_suspects_that_are_given_back_make_room_for_others(lane, of_one_queue):
    executors = Executors(4, None, 15.0)
    claims = lane.open()
    for c in claims:
        c.suspicion = 2
    executors.ready.extend(claims)
    executors.crowded = True
    assert executors.take_back(lane if of_one_queue else None) == claims
    assert not executors.crowded


@pytest.mark.parametrize(('n', 'found'), [(1000, {'0'}), (1001, {'0', '1000'})])
def test_of_many_cancelled_tasks_none_runs(redis, n, found):
    """The worker keeps at most 1,000 ids in memory; if there are more, it asks Redis for each claim."""
    redis.hset('q_control', 'version', 3)
    redis.zadd('q_revoked', {f'{i}': (1 << 42) + i for i in range(n)})
    lane = Lane(Store(Source(redis), '', 'q', 'w'), False)
    follower = Follower([lane], Executors(1, None, 15.0), None, None, None)
    claims = [
        types.SimpleNamespace(batch=types.SimpleNamespace(version=3), message=types.SimpleNamespace(id=id))
        for id in ('0', '1000', 'x')
    ]
    link = lane.store.link()
    assert follower.screen(link, lane, claims) == found
    link.hang_up()
    redis.delete('q_revoked', 'q_control')


# Running.


def test_what_redis_was_not_told_stays_with_what_is_done_meanwhile():
    lane = types.SimpleNamespace(done=['new'])
    Executors(1, None, 15.0).put_done(lane, ['old', 'older'])
    assert lane.done == ['old', 'older', 'new']


@pytest.mark.parametrize('fails', [False, True])
def test_behind_a_call_there_is_no_current_task(fails):
    def f():
        assert current().path == 'm:f'
        if fails:
            raise ValueError

    assert calling.call(Function('m:f', f), [], {}, False, Context('q', 'm:f', {}, None, None)).ok != fails
    with pytest.raises(RuntimeError, match='outside of a task'):
        current()


def test_of_a_long_stack_the_end_is_kept():
    def f():
        raise ValueError('a' * 5000 + ' and so on')

    ended = calling.call(Function('m:f', f), [], {}, False, None)
    assert len(ended.stack) == 4096
    assert ended.stack.endswith('a and so on\n')


@pytest.mark.parametrize(
    ('function', 'worker', 'limit'), [(None, 0, 0), (None, 500, 500), (200, 500, 200), (800, 500, 800)]
)
@pytest.mark.parametrize('message', [['m:f'], ['m:f', [], {}, 0, {'id': 'x'}]])
def test_the_timeout_of_a_function_counts_before_that_of_the_worker(lane, message, function, worker, limit):
    (c, _) = lane.open()
    c.message, c.function = Message(msgpack.packb(message)), Function('m:f', None, timeout=function)
    lane.store.now = lambda: 5
    assert Runs(Judge('w', Rules(timeout=worker)), None).prepare(c, None)
    assert c.limit == limit


# Ending.


def test_what_is_counted_differently_is_told_by_itself():
    """All ends of one call raise the counters of the first."""
    ends = [End(None, ARCHIVE, counted) for counted in (FAILED, FAILED, EXPIRED, FAILED)]
    assert _alike(ends) == 2
    assert _alike(ends[2:]) == 1


@pytest.mark.parametrize(('error', 'lost'), [(UnansweredError('lost'), 0), (UnreachableError('away'), 2)])
def test_claims_whose_end_may_have_been_told_are_not_lost_when_it_is_told_again(lane, error, lost):
    f = Finisher(lane, Executors(1, None, 15.0), None, 10, 10)
    answers = [error, [0, 0]]

    def tell(*_):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    f._call = tell
    ends = [End(c, RETRY) for c in lane.open()]
    assert f._tell(RETRY, ends) == ends
    assert f._tell(RETRY, ends) == []
    assert f._lost == lost


def test_a_task_that_is_not_cancelled_any_more_goes_back_and_runs(lane):
    """The answer is 2 if the claim still exists because its task was not cancelled, or because another one has its id
    now."""
    f = Finisher(lane, Executors(1, None, 15.0), None, 10, 10)
    f._call = lambda *_: [2]
    c, _ = lane.open()
    c.message = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x'}]))
    c.canceled, lane.revoked = True, {'x', 'y'}
    assert f._tell(CANCEL, [End(c, CANCEL)]) == []
    assert [(e.claim, e.kind) for e in f._pending] == [(c, RELEASE)]
    assert (lane.revoked, c.canceled, c.settled) == ({'y'}, False, False)


def test_a_batch_is_named_again_behind_a_lost_answer(lane):
    """Redis must be told which batches are over, or it would keep their numbers as long as the worker lives."""
    f = Finisher(lane, Executors(1, None, 15.0), None, 10, 10)
    told = []

    def call(kind, batches, group):
        told.append(batches)
        if len(told) == 1:
            raise UnansweredError('lost')
        return [1] * len(group)

    f._call = call
    ends = [End(c, RETRY) for c in lane.open()]
    assert f._tell(RETRY, ends) == ends
    assert f._tell(RETRY, ends) == []
    assert told == [[1], [1]]
    assert (lane.known, lane.batches) == (0, {})


def test_claims_that_are_settled_here_and_stand_in_redis_are_given_back(lane):
    """That is so even if another claim of their batch is running."""
    lane.settle(lane.open()[:1])
    assert lane.strangers(['1-1', '1-2', '1-3', '2-1', 'x'], 1) == ['1-1', '1-3']


@pytest.mark.parametrize('died', [False, True])
@pytest.mark.parametrize(
    ('what', 'ended'),
    [
        ({}, Ended()),
        ({}, Ended(ok=False, says='drop')),
        ({'canceled': True}, Ended(ok=False)),
        ({'lost': True}, Ended()),
    ],
)
def test_nothing_is_kept_of_a_task_that_has_reported(lane, died, what, ended):
    c, other = lane.open()
    c.message = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x'}]))
    c.report = (1, 2, '')
    for name, value in what.items():
        setattr(c, name, value)
    lane.store.now = lambda: 5
    lane.finisher.add = lane.finisher.count_lost = lambda _: None
    r = Reporter('w')
    r._late, r._sent = {c: 1.0, other: 1.0}, {c: 1.0, other: 1.0}
    runs = Runs(Judge('w', Rules()), r)
    if died:
        runs.died(c, True)
    else:
        runs.conclude(c, ended)
    assert (r._late, r._sent) == ({other: 1.0}, {other: 1.0})


@pytest.mark.parametrize(
    ('ended', 'counted'),
    [
        (Ended(ok=True), [(False, False)]),
        (Ended(ok=False, says='snooze'), []),
        (Ended(ok=False, error='x'), [(True, False)]),
    ],
)
def test_a_snoozed_task_is_no_run(lane, ended, counted):
    c, _ = lane.open()
    c.message, c.function = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x'}])), Function('m:f', None)
    lane.store.now, lane.finisher.add, found = lambda: 5, lambda _: None, []
    Runs(Judge('w', Rules()), Reporter('w'), lambda _, *more: found.append(more)).conclude(c, ended)
    assert found == counted


def test_texts_are_cut_between_characters():
    assert info.clip('x' + 'é' * 3000) == 'x' + 'é' * 2047
    assert info.clip('é' * 2048) == 'é' * 2048


def test_counters_are_kept_for_90_days(redis):
    store = Store(Source(redis), '', 'q', 'w')
    link = store.link()
    store.ack(link, Acked(), 1)
    link.hang_up()
    assert 89 < redis.ttl(store._stats) / 86400 <= 90


@pytest.mark.parametrize(
    ('left', 'starts', 'freed', 'leaves'), [(0, True, True, False), (1, True, False, True), (-1, False, False, True)]
)
def test_a_lock_that_ended_at_the_start_does_not_end_again(lane, left, starts, freed, leaves):
    """left is how many locks the task still has; -1 means that it must not start."""
    (c, _), ended = lane.open(), []
    c.message = types.SimpleNamespace(id='x', path='m:f', meta={'id': 'x', 'uk': 'k:a', 'us': True})
    c.function = Function('m:f', None)
    lane.revoked, lane.store.unlock, lane.store.now = set(), lambda link, id, lock, left: answer, lambda: 5
    lane.store.link = lambda: types.SimpleNamespace(hang_up=lambda: None)
    lane.finisher.add = ended.append
    judge = types.SimpleNamespace(stale=lambda *_: None, limit=lambda *_: 0, cancellation=lambda *_, **__: 'cancelled')
    answer = left
    assert Runs(judge, None).prepare(c, None) == starts
    assert (c.freed, c.lock, c.leaves) == (freed, '' if freed else 'k:a', leaves)
    assert ended == ([] if starts else ['cancelled'])


# Looking after the queue.


def test_what_was_claimed_last_is_given_back_first():
    """Each claim goes to the front, so the tasks get back their old order."""
    pages, taken = [(['1-1', '10-1', '2-1', '1-10', '1-2'], 5), ([], 0)], []

    def sweep(link, liveness, hash, limits, verdicts):
        taken.extend(v.token for v in verdicts)
        return len(verdicts), 0

    store = types.SimpleNamespace(
        name='q',
        keys=Keys('q', ''),
        link=types.SimpleNamespace,
        now=lambda: 0,
        death_of=lambda *_: Death(),
        claim_tokens=lambda *_: pages.pop(0),
        claims=lambda link, hash, tokens: ([(t, msgpack.packb(['a:b'])) for t in tokens[:2]], 2),
        sweep=sweep,
    )
    assert Sweeping([store], 'w', 15.0, 8.0, contact.Contact(15.0), 10, 10)._sweep_hash(store, 'dead') == 5
    assert taken == ['10-1', '2-1', '1-10', '1-2', '1-1']


@pytest.mark.parametrize(('claims', 'actions'), [(1, ['alone']), (2, ['count', 'count'])])
def test_only_the_one_claim_of_a_dead_worker_died_alone(claims, actions):
    """Nor has the last one of several that are read one after the other."""
    held = [f'1-{i}' for i in range(claims)]

    def sweep(link, liveness, hash, limits, verdicts):
        for v in verdicts:
            held.remove(v.token)
            found.append(v.action)
        return len(verdicts), 0

    found = []
    store = types.SimpleNamespace(
        name='q',
        keys=Keys('q', ''),
        link=types.SimpleNamespace,
        now=lambda: 0,
        death_of=lambda *_: Death(),
        claim_tokens=lambda *_: (held[:1], len(held)),
        claims=lambda link, hash, tokens: ([(t, msgpack.packb(['a:b'])) for t in tokens], len(tokens)),
        sweep=sweep,
    )
    assert Sweeping([store], 'w', 15.0, 8.0, contact.Contact(15.0), 10, 10)._sweep_hash(store, 'dead') == claims
    assert found == actions


@pytest.mark.parametrize(
    ('scheduled', 'retry', 'sooner'), [(-1, -1, -1), (5, -1, 5), (-1, 5, 5), (5, 9, 5), (9, 5, 5), (0, 9, 9)]
)
def test_the_next_look_is_when_the_next_task_is_due(scheduled, retry, sooner):
    """0 ms means that more tasks may be due, so the mover asks again."""
    answers = {'scheduled': [scheduled], 'retry': [retry]}
    lane = types.SimpleNamespace(store=types.SimpleNamespace(link=lambda: None, name='q'))
    lane.store.move = lambda link, shelf, n: (answers[shelf].pop(0) if answers[shelf] else -1, [])
    assert Mover([lane], lambda *_: None, None, None, 10, None)._move(lane) == sooner


@pytest.mark.parametrize(('took', 'holds'), [(3.7, True), (3.8, False)])
def test_a_slow_answer_breaks_the_contact(monkeypatch, took, holds):
    """An answer is slow after a quarter of the heartbeat's life, even while it is unknown whether it comes."""
    now = [100.0]
    monkeypatch.setattr(contact, 'time', types.SimpleNamespace(monotonic=lambda: now[0]))
    c = contact.Contact(15.0)
    with c.call():
        pass
    with c.call():
        now[0] += took
        assert (c.unbroken() is not None) == holds
    assert c.unbroken() == (100.0 if holds else None)


@pytest.mark.parametrize(
    ('looks', 'counts'),
    [
        # Tasks that are found leave the list, and those after them move up.
        ([range(450)], [50, 100, 100, 50]),
        # After the last page, the mover begins again, because tasks may have come meanwhile: the last ones first.
        ([range(150), [*range(50, 150), *range(200, 300), *range(150)]], [0, 100]),
    ],
)
def test_no_parked_task_is_left_out(looks, counts):
    """The worker can run tasks from 150 on."""
    parked, found = [], []
    lane = Lane(types.SimpleNamespace(link=lambda: None, name='q'), False)
    lane.store.parked_page = lambda link, offset, n: [(i, b'%d' % i) for i in parked[offset : offset + n]]
    m = Mover([lane], None, lambda lane, note: int(note) >= 150, lambda: None, 10, None)
    for _ in counts:
        parked = list(looks.pop(0)) if looks else parked
        m._find(0, len(parked))
        found.append(len(lane.parked))
        parked = [id for id in parked if id not in lane.parked]
    assert found == counts
    assert max(parked) < 150


@pytest.mark.parametrize(
    ('error', 'stays'),
    [
        (redis_py.exceptions.ReadOnlyError("You can't write against a read only replica."), False),
        (redis_py.exceptions.MasterDownError('Link with MASTER is down'), False),
        (redis_py.exceptions.BusyLoadingError('Redis is loading the dataset in memory'), False),
        (
            redis_py.exceptions.ResponseError(
                "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write against a replica."
            ),
            False,
        ),
        (
            redis_py.exceptions.ResponseError('UNBLOCKED force unblock, instance state changed (master -> replica?)'),
            False,
        ),
        (redis_py.exceptions.ResponseError('UNBLOCKED client unblocked via CLIENT UNBLOCK'), True),
        (redis_py.exceptions.ResponseError('WRONGTYPE'), True),
    ],
)
def test_a_master_that_has_become_a_replica_is_left(error, stays):
    link, given_up = Link(types.SimpleNamespace(give_up=lambda _: given_up.append(1))), []
    link._connection = types.SimpleNamespace(disconnect=lambda: None)
    link._refused('claim', error)
    assert link.connected == stays
    assert bool(given_up) is not stays


def test_a_function_that_is_loaded_again_takes_the_place_of_the_old_one():
    def load():
        def f():
            pass

        return f

    registry, old, new = Registry(), load(), load()
    registry.add(Function('m:f', old))
    registry.add(Function('m:f', new, retry=3))
    assert registry.get('m:f').call is new
    assert registry.get('m:f').retry == 3


def test_a_function_keeps_its_path():
    registry = Registry()
    registry.add(Function('m:f', load := lambda: None))
    with pytest.raises(ArgumentsError, match="path 'm:f'"):
        registry.add(Function('m:f', written))
    assert registry.get('m:f').call is load


# The log.


def written(caplog, text):
    """Returns how many lines contain text, and those of them that stand for several events."""
    lines = [r.getMessage() for r in caplog.records if text in r.getMessage()]
    return len(lines), [line for line in lines if 'since the last line' in line]


def test_claims_of_dead_legacy_workers_take_a_line_a_second(caplog):
    store = types.SimpleNamespace(
        name='q', source=None, keys=Keys('q', ''), link=types.SimpleNamespace, now=lambda: 1, claims=lambda *_: ([], 1)
    )
    sweeping = Sweeping([store], 'own', 4.0, 1.0, contact.Contact(4.0), 1, 1)
    sweeping._take = lambda *_: (1, 0)
    for i in range(20):
        sweeping._sweep_legacy(store, f'dead{i}')
    sweeping._lines.flush()
    n, counted = written(caplog, 'dead legacy worker')
    assert n == 2
    assert 'dead19 (19 since the last line)' in counted[0]


def test_ids_without_end_are_cut_in_the_log():
    record = logging.LogRecord(
        'godelayed.worker', logging.ERROR, '', 0, 'queue %s: %s (%d)', ('q', 'x' * 5000, 7), None
    )
    OneLine().filter(record)
    assert record.getMessage() == f'queue q: {"x" * 1024}… (5000 characters) (7)'
