"""Receiving claimed tasks: which are made ready, and which are given back."""

import time

import msgpack
import pytest

from godelayed.registry import Function
from godelayed.worker.finish import ARCHIVE, CANCEL, DEFER, FORWARD, PARK, RELEASE
from godelayed.worker.link import UnansweredError
from godelayed.worker.store import Haul


@pytest.fixture
def intake(worker):
    """A worker that knows m:f, and a function that has it receive messages. It returns how many are ready, and how the
    others end."""

    def make(**settings):
        w = worker('q', **settings)
        (lane,) = w._lanes
        w.registry.add(Function('m:f', None))
        w.ends = []
        lane.finisher.add = lambda *ends: w.ends.extend((e.claim.raw, e.kind) for e in ends)
        lane.finisher.acknowledged = lambda *_: None
        lane.version = 0

        def receive(*messages, version=0, link=None):
            lane.store.claim = lambda *_: Haul(1, 0, None, version, list(messages))
            _, claims = lane.claim(None, len(messages), 0, False, [])
            return w._intake.receive(link, claims)

        w.receive = receive
        return w

    return make


def message(path='m:f', **meta):
    return msgpack.packb([path, [], {}, 0, {'id': 'x', **meta}])


def go(**meta):
    return msgpack.packb(['example.com/app.F', msgpack.packb([[1]]), {'id': 'x', 'at': 1, **meta}])


def test_what_a_claim_brings_when_the_worker_stops_is_given_back(intake):
    w = intake()
    assert w.receive(message()) == 1
    w._intake.close()
    assert w.receive(message(), message('m:unknown')) == 0
    assert w.ends == [(message(), RELEASE), (message('m:unknown'), RELEASE)]
    assert len(w._executors.ready) == 1


def test_what_a_claim_brings_when_its_queue_is_paused_is_given_back(intake):
    w = intake()
    w._lanes[0].paused = True
    assert w.receive(message()) == 0
    assert w.ends == [(message(), RELEASE)]


def test_a_queue_that_is_paused_just_now_starts_nothing(intake):
    """The pause came while the worker looked at its tasks."""
    w = intake()
    (lane,) = w._lanes
    lane.now = lambda: setattr(lane, 'paused', True) or 1
    w.receive(message())
    assert w.ends == [(message(), RELEASE)]
    assert not w._executors.ready


def test_tasks_that_may_be_cancelled_do_not_start_while_redis_cannot_be_asked(intake, monkeypatch):
    """Claims of unreadable messages end all the same. The worker does not ask for the others again at once."""
    w = intake()

    def screen(*_):
        raise UnansweredError('away')

    monkeypatch.setattr(w._follower, 'screen', screen)
    before = w._lanes[0].rest
    assert w.receive(message(), b'garbage', version=3) == 0
    assert w.ends == [(b'garbage', ARCHIVE), (message(), RELEASE)]
    assert w._lanes[0].rest > before


def test_cancelled_tasks_do_not_start(intake, monkeypatch):
    w = intake()
    monkeypatch.setattr(w._follower, 'screen', lambda *_: {'b'})
    assert w.receive(message(id='a'), message(id='b'), version=3) == 1
    assert w.ends == [(message(id='b'), CANCEL)]


@pytest.mark.parametrize(
    ('settings', 'raw', 'kind'),
    [
        ({}, go(), PARK),
        ({'go_queue': 'q'}, go(), PARK),
        ({'go_queue': 'go'}, go(), FORWARD),
        ({'go_queue': 'go'}, go(g='daily'), FORWARD),
        ({}, go(g='daily'), PARK),
        ({'go_queue': 'go'}, message('m:unknown'), PARK),
    ],
)
def test_what_it_does_not_run_itself(intake, settings, raw, kind):
    w = intake(**settings)
    assert w.receive(raw) == 0
    assert w.ends == [(raw, kind)]


def test_a_suspect_that_is_claimed_among_others_is_set_apart_and_looked_for(intake):
    w, suspect = intake(), message(d=2, da=int(time.time() * 1000))
    assert w.receive(message(), suspect) == 1
    assert w.ends == [(suspect, DEFER)]
    assert w._lanes[0].suspects


@pytest.mark.parametrize('note', [None, b'', b'\xc1', b'\x91\x01', b'\x81\xa8function\x07'])
def test_parked_tasks_of_which_nothing_is_known_stay(intake, note):
    w = intake(go_queue='go')
    assert not w._intake.can_run(w._lanes[0], note)
    assert w._intake.can_run(w._lanes[0], msgpack.packb({'function': 'm:f'}))


def test_nothing_starts_beside_a_suspect_that_is_noted_as_alone(intake, monkeypatch):
    """They wait until Redis has deleted the note: otherwise the deaths of both would count as alone."""
    w = intake()
    (lane,) = w._lanes
    notes, answers = [], [None, UnansweredError('away'), None]

    def mark(link, note, value):
        notes.append((note, value))
        answer = answers.pop(0)
        if answer:
            raise answer

    monkeypatch.setattr(lane.store, 'mark', mark)
    assert w.receive(message(d=1, da=lane.now())) == 1
    assert w.receive(message(id='y')) == 0
    assert w.ends == [(message(id='y'), RELEASE)]
    assert lane.rest > 0
    assert w.receive(message(id='z')) == 1
    assert notes == [('alone', '1-1'), ('alone', ''), ('alone', '')]
    assert w.receive(message(id='z')) == 1
    assert len(notes) == 3


def test_a_suspect_starts_though_redis_has_not_heard_that_it_is_alone(intake, monkeypatch):
    """Its death would count as one among others."""
    w = intake()

    def mark(*_):
        raise UnansweredError('away')

    monkeypatch.setattr(w._lanes[0].store, 'mark', mark)
    assert w.receive(message(d=1, da=w._lanes[0].now())) == 1
