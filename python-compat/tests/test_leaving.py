"""What a worker tells Redis when it stops, and why it stops."""

import threading
import types

import pytest

from godelayed import DelayedError
from godelayed.worker import StillRunningError
from godelayed.worker import worker as workers
from godelayed.worker.finish import RELEASE, End
from godelayed.worker.link import RefusedError, UnansweredError, UnreachableError, WrongTypeError


@pytest.fixture
def leaving(worker, monkeypatch):
    """A worker of two queues whose calls to Redis the test answers: answers by queue, the calls that it made, and its
    pauses."""
    w = worker('a', 'b')
    answers, asked, pauses = {'a': [], 'b': []}, [], []

    def ask(lane, what):
        def call(*args, **_):
            asked.append((lane.name, what, *args[1:]))
            answer = answers[lane.name].pop(0) if answers[lane.name] else True
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    for lane in w._lanes:
        lane.confirmed = (0.0, 0.0)
        for what in ('unregister', 'mark', 'tokens', 'release'):
            monkeypatch.setattr(lane.store, what, ask(lane, what))
    monkeypatch.setattr(workers.time, 'sleep', pauses.append)
    return w, answers, asked, pauses


def test_a_worker_takes_its_leave_again_and_again(leaving):
    """Otherwise its heartbeat would live on for seconds, and others could not have its claims."""
    w, answers, asked, pauses = leaving
    answers['a'] = [UnreachableError('away'), UnansweredError('lost')]
    w._unregister()
    assert asked == [('a', 'unregister')] * 3 + [('b', 'unregister')]
    assert len(pauses) == 2
    assert 0 < pauses[0] < 0.2


def test_a_queue_where_it_was_never_known_is_not_left(leaving):
    w, _, asked, _ = leaving
    w._lanes[0].confirmed = None
    w._unregister()
    assert asked == [('b', 'unregister')]


def test_a_worker_says_that_it_could_not_take_its_leave(leaving, monkeypatch):
    """Its heartbeat expires, and a sweeper removes it."""
    w, answers, asked, _ = leaving
    monkeypatch.setattr(workers, 'CALL_TIMEOUT', -1.0)
    answers['a'] = [UnreachableError('away')]
    with pytest.raises(DelayedError, match='could not take its leave from Redis: queue a: away$'):
        w._unregister()
    assert asked == [('a', 'unregister')]


@pytest.mark.parametrize(('refused', 'left'), [(False, []), (True, [('a', 'unregister')])])
def test_a_worker_that_could_not_tell_how_tasks_ended_is_left_to_the_sweepers(leaving, refused, left):
    """As long as the worker is registered, its claims exist: sweepers make their tasks run again.

    A Redis that is away is not asked about other queues either.
    """
    w, _, asked, _ = leaving
    w._lanes[1].finisher.add(End(None, RELEASE), End(None, RELEASE))
    w._lanes[1].finisher.refused = refused
    with pytest.raises(DelayedError, match='queue b: Redis has not confirmed how 2 tasks ended; they may run again'):
        w._unregister()
    assert asked == left


def test_that_a_worker_stops_in_good_order_is_noted_again_and_again(leaving, monkeypatch):
    """It does so on each queue of which it holds claims: tasks that it leaves behind have not died with it."""
    w, answers, asked, _ = leaving
    waits = []
    monkeypatch.setattr(w._left, 'wait', waits.append)
    w._lanes[0].known = 1
    w._lanes[1]._calling.append(1)
    answers['b'] = [UnansweredError('lost'), UnreachableError('away')]
    w._note_stop()
    assert asked == [('b', 'mark', 'stopped', '1')] * 3 + [('a', 'mark', 'stopped', '1')]
    assert len(waits) == 2


def test_a_queue_where_the_stop_cannot_be_noted_keeps_no_other(leaving, monkeypatch):
    w, answers, asked, _ = leaving
    monkeypatch.setattr(w._left, 'wait', lambda _: w._left.set())
    w._lanes[0].known = w._lanes[1].known = 1
    answers['b'] = [WrongTypeError('b')]
    w._note_stop()
    assert [lane for lane, *_ in asked] == ['b', 'a']


def test_nothing_is_noted_where_nothing_is_in_hand_or_any_more(leaving):
    w, _, asked, _ = leaving
    w._note_stop()
    w._lanes[0].known = 1
    w._left.set()
    w._note_stop()
    assert asked == []


@pytest.mark.parametrize('reason', ['stop', 'max tasks', 'empty', 'restart', 'order', 'processes'])
def test_a_worker_that_has_nothing_in_hand_does_not_wait_until_its_stop_is_noted(worker, monkeypatch, reason):
    """Redis may be away for long. It is noted whatever makes the worker stop."""
    w, noted = worker('q'), []
    w._stop_for(reason)
    monkeypatch.setattr(w, '_note_stop', lambda: noted.append(w._left.wait(60)))
    monkeypatch.setattr(w, '_unregister', lambda: noted.append('left'))
    w._wind_up([], [], [], [])
    assert noted == [True, 'left']


def test_a_worker_names_the_tasks_that_do_not_end(worker, lane):
    """It tells them to end first, and their claims remain."""
    w, told, (c, _) = worker('q', grace=0, cancel_grace=0), [], lane.open()
    c.message, c.interrupt = types.SimpleNamespace(path='m:f'), told.append
    w._executors.running[c] = None
    with pytest.raises(StillRunningError, match='m:f') as e:
        w._wind_up([], [], [], [])
    assert (e.value.functions, told) == (['m:f'], ['stopping'])


# Why it stops.


def test_a_fault_stops_the_worker(worker, caplog):
    """Otherwise it would go on without one of its threads."""

    def fail():
        raise ZeroDivisionError

    w = worker('q')
    with pytest.raises(ZeroDivisionError):
        w._guarded(fail)
    assert (w.stop_reason, w._stop_event.is_set()) == ('fault', True)
    assert 'a fault in the worker; it stops' in caplog.text


def test_the_first_reason_to_stop_counts(worker):
    w = worker('q')
    assert w.stop_reason == ''
    w._stop_for('max tasks')
    w.stop()
    assert w.stop_reason == 'max tasks'


@pytest.mark.parametrize('connected', [True, False])
def test_a_worker_is_connected_if_it_is_on_every_queue(worker, connected, monkeypatch):
    w = worker('a', 'b')
    monkeypatch.setattr(w._lanes[0], 'fresh', lambda life: life == 15.0)
    monkeypatch.setattr(w._lanes[1], 'fresh', lambda _: connected)
    assert w.connected == connected


@pytest.fixture
def limits(worker, monkeypatch):
    """A worker that must stop when its queue is empty, and whose mover looks whenever it is asked to."""
    w = worker('q', stop_when_empty=True)
    w._slots[0].mover.looks, w._slots[0].mover.idle = 1, True

    def look():
        w._slots[0].mover.looks += 1

    monkeypatch.setattr(w._slots[0].mover, 'now', look)
    monkeypatch.setattr(w, '_stop_event', threading.Event())
    return w


def test_a_worker_stops_when_nothing_is_left(limits):
    limits._look_at_limits()
    assert limits.stop_reason == 'empty'


@pytest.mark.parametrize(
    'busy',
    [
        lambda w: setattr(w._slots[0].mover, 'idle', False),  # a task is pending or due, or one that is parked can run
        lambda w: setattr(w._slots[0].mover, 'looks', 0),  # nobody has looked
        lambda w: setattr(w._executors, 'coming', 1),
        lambda w: setattr(w._executors, 'lone', 'a suspect'),
        lambda w: w._executors.ready.append('a task'),
        lambda w: w._executors.running.update({'a task': None}),
        lambda w: setattr(w._lanes[0], 'known', 1),  # Redis does not know how a task ended
    ],
)
def test_a_worker_does_not_stop_while_something_is_left(limits, busy):
    busy(limits)
    limits._look_at_limits()
    assert limits.stop_reason == ''


@pytest.mark.parametrize(('error', 'asked'), [(UnansweredError, 'a'), (RefusedError, 'ab')])
def test_a_redis_that_is_away_is_told_once_of_what_has_run(leaving, error, asked):
    """Otherwise the stop would take a time limit for each queue."""
    w, told = leaving[0], []

    def tally(lane):
        def tell(_):
            told.append(lane.name)
            raise error('why')

        return types.SimpleNamespace(tell=tell)

    w._tallies = {lane: tally(lane) for lane in w._lanes}
    w._tell_at_the_end(w._lanes)
    assert ''.join(told) == asked
