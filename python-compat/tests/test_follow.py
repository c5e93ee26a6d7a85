"""Doing what the control hash says, and ending cancelled tasks, with a fake Redis."""

import types

import msgpack
import pytest

from godelayed.worker.executors import Executors
from godelayed.worker.follow import Follower
from godelayed.worker.link import UnansweredError
from godelayed.worker.message import Message
from godelayed.worker.store import Control


@pytest.fixture
def follower(lane):
    """A follower of one queue, the contents of its control hash from look to look, and what the follower did."""
    executors, said, done = Executors(4, None, 15.0), [], []
    lane.store.control = lambda _: said.pop(0)
    lane.store.revoked = lambda _: done.append('revoked?') or (lane.ids, lane.all)
    lane.store.are_revoked = lambda link, ids: [id in lane.others for id in ids]
    lane.ids, lane.all, lane.others = [], True, set()
    f = Follower(
        [lane],
        executors,
        lambda lane, paused: done.append(('paused', paused)),
        lambda last, order: done.append((last, order)),
        lambda: done.append('restart'),
    )
    f._executors = executors
    return f, lane, said, done


def look(follower, *said):
    f, lane, answers, done = follower
    answers.extend(said)
    for _ in said:
        f.look(None, lane)
    return done


def test_what_was_told_before_the_worker_came_counts_but_for_a_restart(follower):
    done = look(follower, Control(3, paused=True, restart='r1', weight=7, order='pause'))
    assert done == ['revoked?', ('paused', True), ('', 'pause')]
    assert (follower[1].weight, follower[1].intent, follower[1].version) == (7, True, 3)
    done.clear()
    look(follower, Control(4, restart='r1'))
    assert done == ['revoked?', ('paused', False), ('pause', '')]
    assert not follower[1].intent
    done.clear()
    look(follower, Control(5, restart='r2'), Control(6, restart='r2'), Control(7))
    assert done == ['revoked?', 'restart', 'revoked?', 'revoked?']


@pytest.mark.parametrize(
    ('since', 'at', 'restarts'), [(0, '1001', 0), (1000, '999', 0), (1000, '1000', 0), (1000, '1001', 1)]
)
def test_a_restart_before_the_first_look_counts_if_the_worker_was_there(follower, since, at, restarts):
    """A worker that could not read the control hash must not miss what all others obey."""
    follower[1].since = since
    assert look(follower, Control(1, restart=at)).count('restart') == restarts
    look(follower, Control(2, restart=at))
    assert follower[3].count('restart') == restarts


@pytest.mark.parametrize(('weight', 'counts'), [(-1, 0), (0, 0), (1000, 1000), (1001, 1000)])
def test_weights_beyond_bounds(follower, weight, counts):
    look(follower, Control(1, weight=weight))
    assert follower[1].weight == counts


def test_a_queue_that_was_told_nothing_has_no_cancelled_tasks(follower):
    """Its control hash no longer exists, and so its orders are gone."""
    follower[1].revoked, follower[1].revoked_partly = {'x'}, True
    assert look(follower, Control(0)) == []
    assert (follower[1].revoked, follower[1].revoked_partly) == (set(), False)


@pytest.mark.parametrize('everything', [True, False])
def test_running_tasks_that_were_cancelled_are_told(follower, everything):
    """That includes tasks whose ids are not among those in memory."""
    f, lane, _, _ = follower
    told = {}
    for c, id in zip(lane.open(), ('a', 'b')):
        c.message = Message(msgpack.packb(['m:f', [], {}, 0, {'id': id}]))
        lane.begin(c, lambda why, id=id: told.setdefault(id, why))
        f._executors.running[c] = None
    lane.ids, lane.all, lane.others = ['a', 'z'], everything, {'b'}
    look(follower, Control(1))
    assert told == ({'a': 'canceled'} if everything else {'a': 'canceled', 'b': 'canceled'})
    assert lane.revoked == ({'a', 'z'} if everything else {'a', 'b', 'z'})


def claims(version, *ids):
    batch = types.SimpleNamespace(version=version)
    return [types.SimpleNamespace(batch=batch, message=types.SimpleNamespace(id=id)) for id in ids]


def test_a_claim_of_another_version_is_held_against_a_new_look(follower):
    f, lane, said, done = follower
    look(follower, Control(1))
    lane.ids = ['b']
    assert f.screen(None, lane, claims(1, 'a', 'b', '')) == set()
    said.append(Control(2))
    assert f.screen(None, lane, claims(2, 'a', 'b', '')) == {'b'}
    assert done == ['revoked?', 'revoked?']


def test_of_tasks_without_an_id_none_is_cancelled(follower):
    f, lane, _, _ = follower
    lane.version, lane.revoked_partly, lane.others = 1, True, {'', 'b'}
    assert f.screen(None, lane, claims(1, '', 'a', 'b')) == {'b'}


def test_a_look_that_fails_is_made_up_for(follower, monkeypatch):
    """The version is not noted, so the next heartbeat finds a different one."""
    f, lane, _, _ = follower

    def fail(*_):
        f._stop = True
        raise UnansweredError('away')

    lane.store.control = fail
    f._links = {0: types.SimpleNamespace(hang_up=lambda: None)}
    f.ask(lane)
    f.run()
    assert lane.version == -1
