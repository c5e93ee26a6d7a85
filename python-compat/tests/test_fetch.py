"""Deciding from which queue to claim and when: looks at queues that were empty, waits, refused claims."""

import threading
import time
import types

import pytest
from working import LIMIT, wait_for

import godelayed
from godelayed.registry import Function, Registry
from godelayed.worker import Worker, fetch, suspects
from godelayed.worker.finish import MAX_ENDS_WAITING
from godelayed.worker.link import RefusedError, UnansweredError, WrongTypeError
from godelayed.worker.slot import Todo
from godelayed.worker.store import Haul


@pytest.fixture
def fetcher(worker, monkeypatch):
    """The fetcher of three queues with a heartbeat, the answers to its looks, and the queues that it looked at."""
    f = worker('a', 'b', 'c')._fetcher
    answers, looks = [], []

    def check(link, stores):
        looks.append([s.name for s in stores])
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, None

    for module in (fetch, suspects):
        monkeypatch.setattr(module, 'check', check)
    for lane in f.lanes:
        lane.confirmed, lane.hot = (time.monotonic(), time.time()), False
    f._claimed = []

    def claim(lane, room, held, **how):
        lane.hot = False  # that was all
        f._claimed.append((lane.name, room))
        return 1

    monkeypatch.setattr(f, 'claim', claim)
    return f, answers, looks


def test_queues_that_were_empty_are_looked_at_while_others_have_tasks(fetcher, monkeypatch):
    """Otherwise a queue that comes before them would keep their tasks waiting until it is empty."""
    monkeypatch.setattr(fetch, 'PROBE_INTERVAL', LIMIT)  # longer than this test takes
    f, answers, looks = fetcher
    a, b, c = f.lanes
    for lane in (a, c):
        lane.probed = time.monotonic() - LIMIT
    b.hot = True
    answers.append([Todo(3, -1, 0, -1), Todo(0, -1, 0, -1)])
    f._round(5)
    assert looks == [['a', 'c']]
    assert f._claimed == [('a', 5), ('b', 4)]
    b.hot = True
    f._round(5)
    assert len(looks) == 1  # not again yet
    for lane in (a, c):
        lane.probed -= fetch.PROBE_INTERVAL
    b.hot = True
    answers.append([Todo(0, -1, 0, -1), Todo(1, -1, 0, -1)])
    f._round(1)
    assert looks[1] == ['a', 'c']
    assert [lane.hot for lane in f.lanes] == [False, False, True]


def test_in_strict_order_later_queues_wait_for_tasks_that_a_claim_has_left(fetcher, monkeypatch):
    f, _, _ = fetcher
    monkeypatch.setattr(f, '_probe', lambda: None)
    monkeypatch.setattr(f, 'claim', lambda lane, room, held, **how: f._claimed.append(lane.name) or 1)
    for lane in f.lanes:
        lane.hot = True
    f._round(5)
    assert f._claimed == ['a']
    f.weights = [1, 1, 1]
    f._claimed.clear()
    f._round(5)
    assert sorted(f._claimed) == ['a', 'b', 'c']


@pytest.mark.parametrize(('weights', 'rest', 'waits'), [(None, 0, True), (None, 60, False), ([1, 1, 1], 0, False)])
def test_in_strict_order_later_queues_wait_for_one_with_which_the_worker_is_behind(fetcher, weights, rest, waits):
    """They do not if Redis does not answer for that one."""
    f, _, _ = fetcher
    b = f.lanes[1]
    f.weights = weights
    b.finisher._untold, b.rest = MAX_ENDS_WAITING, time.monotonic() + rest
    f._look_behind()
    assert [f._paused(lane) for lane in f.lanes] == [False, True, waits]


def test_queues_that_may_not_be_claimed_from_are_not_looked_at(fetcher):
    f, answers, looks = fetcher
    a, b, c = f.lanes
    a.paused, b.confirmed, c.rest = True, None, time.monotonic() + 60
    f._probe()
    assert looks == []


def test_a_look_that_fails_keeps_its_server_for_a_while(fetcher):
    f, answers, _ = fetcher
    answers.append(UnansweredError('away'))
    f._probe()
    assert f.waiters[0].until > time.monotonic()
    assert not any(lane.hot for lane in f.lanes)


def test_a_look_that_redis_refuses_leaves_it_to_claims_to_show_for_which_queue(fetcher):
    f, answers, _ = fetcher
    answers.append(RefusedError('NOPERM'))
    f._probe()
    assert f.waiters[0].until == 0
    assert all(lane.hot for lane in f.lanes)


def test_a_look_beside_a_key_of_another_type_leaves_it_to_claims_to_show_where_it_is(fetcher, monkeypatch):
    f, _, _ = fetcher
    todos = [Todo(0, -1, 0, -1, unknown=True), Todo(1, -1, 0, -1), Todo(0, -1, 0, -1)]
    monkeypatch.setattr(fetch, 'check', lambda *_: (todos, WrongTypeError('a')))
    f._probe()
    assert f.waiters[0].until == 0
    assert [lane.hot for lane in f.lanes] == [True, True, False]


def test_late_heartbeats_let_no_later_queue_overtake(fetcher):
    """The first queue has registered a little before the others, and so its heartbeat is the first that may expire."""
    f, answers, looks = fetcher
    a, b, _ = f.lanes
    a.hot = b.hot = True
    a.confirmed = tuple(at - f.life for at in a.confirmed)
    assert not f.any_hot()[0]
    f._round(5)
    assert (f._claimed, looks) == ([], [])
    a.confirmed = b.confirmed
    answers.append([Todo(0, -1, 0, -1)])
    f._round(5)
    assert f._claimed == [('a', 5), ('b', 4)]


def test_a_queue_on_which_redis_refuses_the_worker_keeps_no_other_waiting(fetcher):
    f, answers, _ = fetcher
    a, b, _ = f.lanes
    a.confirmed, a.refused = None, True
    a.hot = b.hot = True
    answers.append([Todo(0, -1, 0, -1)])
    f._round(5)
    assert f._claimed == [('b', 5)]


def test_suspects_are_looked_for_at_the_start(fetcher):
    """A worker that has nothing in hand takes them first."""
    f, answers, looks = fetcher
    answers.append([Todo(0, -1, 0, -1, 2), Todo(0, -1, 0, -1), Todo(1, -1, 0, -1)])
    f.suspects.open()
    assert looks == [['a', 'b', 'c']]
    assert [lane.suspects for lane in f.lanes] == [True, False, False]


def test_suspects_that_could_not_be_looked_for_are_left_to_the_mover(fetcher):
    f, answers, _ = fetcher
    answers.append(UnansweredError('away'))
    f.suspects.open()
    assert [lane.suspects for lane in f.lanes] == [False] * 3


def test_behind_a_lone_suspect_others_come_first_for_as_long_as_they_had_to_wait(fetcher, monkeypatch):
    f, _, _ = fetcher
    s, now = f.suspects, [1000.0]
    monkeypatch.setattr(suspects, 'time', types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(f, 'any_hot', lambda: (True, 0.0))
    s.lone, s._since = 'a suspect', 970.0
    s._over()
    assert (s.lone, s.rest) == (None, 1030.0)
    assert all(lane.hot for lane in f.lanes)
    assert not s.takes()
    now[0] = 1030.0
    assert s.takes()


@pytest.fixture
def claiming(worker):
    """The fetcher of a queue, with the result of its claims, and a record of its calls."""
    f = worker('q')._fetcher
    (lane,) = f.lanes
    lane.hot, told = False, []
    lane.look, lane.beat = lambda: told.append('look'), lambda: told.append('beat')

    def claim(haul, **how):
        lane.claim = lambda *_: (haul, [])
        return f.claim(lane, 5, 0, **how)

    return f, lane, claim, told


def test_a_queue_that_is_found_paused_is_looked_at_and_left_for_a_moment(claiming):
    _, lane, claim, told = claiming
    assert claim(Haul(-2)) == 0
    assert (told, lane.hot) == (['look'], True)
    assert lane.rest > time.monotonic()


def test_a_batch_number_that_was_used_leads_to_the_next(claiming, caplog):
    f, lane, claim, told = claiming
    assert claim(Haul(-1)) == 0
    assert told == []
    assert f.waiters[0].until == 0
    assert 'a batch number was used before' in caplog.text


@pytest.mark.parametrize(
    ('left', 'messages', 'room', 'hot'),
    [
        (3, [b'x'], 5, True),
        (0, [b'x'], 5, False),
        (3, [], 5, False),  # tasks without notification: on a legacy queue they belong to another worker
        (3, [], 0, True),
    ],
)
def test_whether_a_queue_is_claimed_from_again(claiming, left, messages, room, hot):
    f, lane, _, _ = claiming
    lane.mend = True
    lane.claim = lambda *_: (Haul(1, left, None, 0, messages), [])
    f.claim(lane, room, 0)
    assert (lane.hot, lane.left, lane.mend) == (hot, left, False)
    assert (lane.probed > 0) == (not hot)


def test_suspects_are_looked_for_again_after_a_claim_that_has_failed(claiming):
    """The notification of the one that there may be is used up."""
    f, lane, _, _ = claiming

    def fail(*_):
        raise UnansweredError('away')

    lane.claim = fail
    f.suspects.claim(lane, 1, 1)
    assert lane.suspects
    lane.claim = lambda *_: (Haul(1, 0), [])
    f.suspects.claim(lane, 1, 0)
    assert not lane.suspects


def test_parked_tasks_are_claimed_by_a_call_that_acknowledges_nothing(claiming):
    """Done claims wait for a call that acknowledges them, or their tasks would run again."""
    f, lane, _, _ = claiming
    lane.done, acknowledged = ['done'], []
    lane.claim = lambda link, room, held, mend, done, *_: acknowledged.append(done) or (Haul(1, 1), [])
    f.claim(lane, 5, 0, parked=['a'])
    assert (acknowledged, lane.done, f.executors.served) == ([[]], ['done'], None)
    f.claim(lane, 5, 0)
    assert (acknowledged[1], lane.done, f.executors.served) == (['done'], [], lane)


@pytest.mark.parametrize(('room', 'blocks'), [((0, 0.1), 0.1), ((0, 0.0), None), ((5, 0.1), 0.1), ((5, 0.0), None)])
def test_a_worker_without_room_looks_again_in_time(fetcher, monkeypatch, room, blocks):
    """Otherwise it would not give back what it has claimed ahead while its tasks are long."""
    f, answers, _ = fetcher
    pauses = []

    def block(pause):
        pauses.append(pause)
        f._stop = True

    answers.append([Todo(0, -1, 0, -1)] * 3)
    monkeypatch.setattr(f, '_room', lambda: room)
    monkeypatch.setattr(f, '_arm', lambda: None)
    monkeypatch.setattr(f, 'block', block)
    f.run()
    assert pauses == [blocks]


def test_notifications_are_put_back_behind_waits_that_were_cut_off(worker):
    """Redis may have sent them to a connection that nobody reads any more. An idle waiter has taken none."""
    w = worker('a', 'b')
    f, mended = w._fetcher, []
    for lane in f.lanes:
        lane.claim = lambda link, most, held, mend, done, lane=lane: mended.append((lane.name, most, held, mend))
    f.mend_after_stop()
    assert mended == []
    f.waiters[0].blocking = True
    f.mend_after_stop()
    assert mended == [('a', 0, 0, True), ('b', 0, 0, True)]

    def fail(*_):
        raise UnansweredError('away')

    f.lanes[0].claim = fail
    f.mend_after_stop()
    assert len(mended) == 2

    def refuse(*_):
        raise WrongTypeError('a')

    f.lanes[0].claim = refuse
    f.mend_after_stop()
    assert mended[2:] == [('b', 0, 0, True)]


def test_when_waits_are_refused_the_worker_looks_for_what_is_due(fetcher):
    """Otherwise nobody would hear of it: Redis refuses a wait because of one of the keys."""
    f, _, _ = fetcher
    asked = []
    f._on_due = lambda: asked.append(1)
    f._handle(f.waiters[0], None, UnansweredError('away'))
    assert asked == []
    f._handle(f.waiters[0], None, WrongTypeError('a'))
    assert asked == [1]


def test_refused_ends_of_a_queue_keep_no_later_one_waiting(fetcher):
    """In strict order later queues wait while the worker is behind with an earlier one, but not for ever."""
    f, _, _ = fetcher
    a = f.lanes[0]
    a.finisher._untold = MAX_ENDS_WAITING
    for refused, waits in ((False, True), (True, False)):
        a.finisher.refused = refused
        f._look_behind()
        assert [lane.waits for lane in f.lanes] == [False, waits, waits]
        assert a.behind


def test_refused_ends_are_not_unfinished(worker):
    """Otherwise no task of another queue that must run alone would ever do so."""
    w = worker('a', 'b')
    a, b = w._lanes
    a.known, b.known = 3, 1
    a.finisher._untold = 3
    assert w._intake.unfinished() == w._intake.in_hand() == 4
    a.finisher.refused = True
    assert (w._intake.unfinished(), w._intake.in_hand()) == (1, 4)


def test_what_is_nudged_is_claimed_from_and_its_notifications_mended(fetcher):
    f, _, _ = fetcher
    a, b, _ = f.lanes
    f.nudge(a)
    f.nudge(b, suspects=True)
    assert not f.block(0.0)
    assert [(lane.hot, lane.mend, lane.suspects) for lane in (a, b)] == [(True, True, False), (False, False, True)]
    assert f.block(0.0)


def test_a_wait_that_leaves_a_queue_out_and_cannot_be_ended_is_a_failure(fetcher, monkeypatch):
    f, _, _ = fetcher
    (w,) = f.waiters
    w.blocking, w.on = True, [f.lanes[0]]
    monkeypatch.setattr(f.lanes[0], 'store', types.SimpleNamespace(rewait=lambda *_: fail()))

    def fail():
        raise UnansweredError('away')

    f._arm()
    assert w.until > time.monotonic()
    assert not w.renewed


def test_that_a_worker_cannot_wait_for_tasks_is_logged_unless_it_stops(worker, caplog):
    caplog.set_level('INFO')
    f = worker('q')._fetcher
    (w,) = f.waiters
    events = [UnansweredError('away')] * 3 + [None]
    for error in events:
        f._woken(w, None, error)
        f.block(1.0)
    f._stop = True
    f._woken(w, None, UnansweredError('cut off'))
    f.block(1.0)
    assert [r.getMessage() for r in caplog.records] == [
        'cannot wait for tasks; trying again: away',
        'waiting for tasks again',
    ]


def test_a_claim_that_redis_refuses_lets_only_its_queue_rest(claiming, caplog):
    caplog.set_level('INFO')
    f, lane, claim, _ = claiming

    def refuse(*_):
        raise RefusedError('WRONGTYPE')

    for failures in (1, 2):
        lane.claim = refuse
        assert f.claim(lane, 5, 0) == 0
        assert (f.waiters[0].until, lane.hot, lane.backoff._failures) == (0, True, failures)
        assert lane.rest > time.monotonic()
    claim(Haul(1, 0))
    assert lane.backoff._failures == 0
    assert [r.getMessage() for r in caplog.records] == [
        'queue q: cannot claim tasks; trying again: WRONGTYPE',
        'queue q: claiming tasks again',
    ]


@pytest.mark.parametrize('key', ['bad', 'bad_noti', 'bad_control', 'bad_workers'])
@pytest.mark.parametrize(
    'queues', [['bad', 'hi', 'lo'], ['hi', 'bad', 'lo'], ['hi', 'lo', 'bad'], {'bad': 9, 'hi': 1, 'lo': 1}]
)
def test_a_queue_whose_keys_have_the_wrong_type_keeps_no_other_waiting(redis, key, queues):
    """It comes back by itself once they are mended."""
    redis.set(key, 'another type')
    ran, registry = [], Registry()
    registry.add(Function('t:note', ran.append))
    w = Worker(redis, queues, registry=registry, processes=False, concurrency=2)
    to = {name: godelayed.Queue(name, redis) for name in ('bad', 'hi', 'lo')}
    for name in ('lo', 'hi'):
        for i in range(5):
            to[name].delay('t:note', f'{name}{i}')
    t = threading.Thread(target=w.run)
    t.start()
    try:
        wait_for(lambda: len(ran) == 10, lambda: f'the tasks of the other queues, found {ran}')
        for name in ('lo', 'hi'):  # also those that come while the worker waits for notifications
            wait_for(lambda: w._fetcher.waiters[0].blocking, 'the worker to wait')
            to[name].delay('t:note', name)
            wait_for(lambda name=name: ran[-1] == name, lambda: f'a task that came later, found {ran}')
        assert w._fetcher.waiters[0].backoff._failures == 0
        to['hi'].options(countdown=0.01).delay('t:note', 'due')
        wait_for(lambda: ran[-1] == 'due', lambda: f'a task that was due later, found {ran}')
        redis.delete(key)
        to['bad'].delay('t:note', 'bad')
        wait_for(lambda: ran[-1] == 'bad', lambda: f'the task of the mended queue, found {ran}')
    finally:
        redis.delete(key)
        w.stop()
        t.join(LIMIT)
    assert not t.is_alive()
