"""Tasks between their claim and their start: how many are claimed, and which may start."""

import time
import types

import pytest

from godelayed.worker.executors import OVERDUE_TIME, RESTLESS_TIME, Executors, Pace
from godelayed.worker.lane import Claim


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, 'monotonic', lambda: now[0])
    return now


def claim(fresh=True, lost=False):
    lane = types.SimpleNamespace(fresh=lambda _: fresh, asked=[])
    lane.beat = lambda: lane.asked.append(1)
    c = Claim(lane, types.SimpleNamespace(at=1000.0), '1-1', b'')
    c.lost = lost
    return c


@pytest.mark.parametrize('prefetch', [None, 10])
def test_what_was_claimed_ahead_and_waits_is_given_back(clock, prefetch):
    """Other workers may be idle. The worker measures again how many to claim ahead, and claims none ahead for a while,
    unless prefetch fixes the number."""
    e = Executors(1, prefetch, 15.0)
    first, second = claim(), claim()
    e.add([first, second])
    assert e.start() is first
    e.pace._most = 7
    clock[0] += OVERDUE_TIME - 0.001
    assert e.room()[2] == []
    clock[0] += 0.002
    n, wait, back = e.room()
    if prefetch:
        assert (n, back, list(e.ready)) == (9, [], [second])
        return
    assert (n, wait, back, list(e.ready), e.pace._most) == (0, RESTLESS_TIME, [second], [], 0)
    e.pace._most = 7
    assert e.room()[0] == 0
    clock[0] += RESTLESS_TIME + 0.001
    assert e.room()[0] == 7


def test_nothing_is_claimed_beside_a_task_that_must_run_alone(clock):
    e, c = Executors(1, 10, 15.0), claim()
    c.suspicion = 9
    assert e.room() == (11, 0.0, [])
    assert e.admit(c)
    assert e.room() == (0, 0.0, [])
    e.dismiss(c)
    assert e.room()[0] == 11


def test_what_may_start_at_once_is_not_given_back(clock):
    e = Executors(2, None, 15.0)
    e.add([claim(), claim()])
    assert e.start()
    clock[0] += 2 * OVERDUE_TIME
    assert e.room()[1:] == (OVERDUE_TIME, [])


def test_no_task_starts_on_a_heartbeat_that_may_be_over(clock):
    """Another worker may have the task by now. The worker asks for a heartbeat, and starts tasks of other queues
    meanwhile."""
    e = Executors(3, None, 15.0)
    stale, good, lost = claim(fresh=False), claim(), claim(fresh=False, lost=True)
    e.add([stale, good, lost])
    assert e.start() is good
    assert e.start() is lost  # only to end its claim
    assert e.start() is None
    assert list(e.ready) == [stale]
    assert len(stale.lane.asked) == 3


@pytest.mark.parametrize(('budget', 'room'), [(None, 12), (5, 5), (1, 1)])
def test_no_more_is_claimed_than_may_start(clock, budget, room):
    e = Executors(4, 8, 15.0)
    e.budget = budget
    assert e.room()[0] == room
    e.expect(room)
    assert e.room()[0] == 0
    e.add([claim() for _ in range(room)])
    e.arrived(room)
    assert e.room()[0] == 0
    if budget:
        for _ in range(room):
            assert e.start()
        assert e.exhausted
        assert e.start() is None


def test_a_pool_looks_again_when_it_may_start_tasks_again():
    e, woken = Executors(1, None, 15.0), []
    e.wake_pool = lambda: woken.append(e.held)
    e.add([claim()])
    e.hold(True)
    assert e.start() is None
    woken.clear()
    e.hold(False)
    assert woken == [False]
    assert e.start()


def test_long_tasks_are_not_claimed_ahead():
    """The pace follows at once when tasks become longer, and gradually when they become shorter."""
    p, now = Pace(None), 1.0
    p.end(0.0001)
    assert p.ahead(4, now) == 200
    p.end(10.0)
    assert p.ahead(4, now + 0.0005) == 200  # too early for a new measurement
    assert p.ahead(4, now + 1) == 0
    p.end(0.0)
    assert p.ahead(4, now + 2) == 0
    for i in range(3, 60):
        p.end(0.0)
        most = p.ahead(4, now + i)
    assert most == 800
