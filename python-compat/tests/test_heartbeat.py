"""Registrations whose answer is lost, with a fake Redis."""

import time
import types

import pytest

from godelayed.worker import heartbeat
from godelayed.worker.contact import Contact
from godelayed.worker.heartbeat import Heartbeat
from godelayed.worker.lane import Lane
from godelayed.worker.link import RefusedError, UnansweredError, UnreachableError
from godelayed.worker.slot import Pulse
from godelayed.worker.store import Haul


class Store:
    """The methods of a store that a heartbeat calls."""

    name = 'q'
    source = None

    def __init__(self):
        self.alive, self.claims, self.tokens_held = False, 0, []
        self.fails = None
        self.registered, self.released = [], []

    def register(self, link, life, value):
        self.registered.append((life, value))
        self.alive = not isinstance(self.fails, UnreachableError)
        if self.fails:
            raise self.fails
        return self.tokens_held

    def tokens(self, link):
        return self.tokens_held

    def release(self, link, batches, tokens):
        self.released += tokens


@pytest.fixture
def beating(monkeypatch):
    store = Store()
    monkeypatch.setattr(heartbeat, 'beat', lambda *_: ([Pulse(store.alive, store.claims, -1)], time.time()))
    lane = Lane(store, False)
    return store, lane, Heartbeat([lane], 15.0, 'host:1', Contact(15.0), lambda: None)


@pytest.mark.parametrize('error', [UnansweredError('lost'), RefusedError('busy'), UnreachableError('away')])
def test_lost_answer_to_a_registration(beating, error):
    """The script may have run: the heartbeat exists, but the worker does not know which claims still exist.

    So it registers again.
    """
    store, lane, beats = beating
    store.fails = error
    with pytest.raises(type(error)):
        beats.beat()
    assert not lane.fresh(15.0)
    store.fails = None
    beats.beat()
    assert len(store.registered) == 2
    assert lane.fresh(15.0)
    beats.beat()
    assert len(store.registered) == 2
    lane.finisher = types.SimpleNamespace(acknowledged=lambda *_: None)
    store.claim = lambda *_: Haul(1, 0, None, 0, [b'a'])
    assert len(lane.claim(None, 1, 0, False, [])[1]) == 1  # no registration is under way any more


def test_when_the_worker_registered_first(beating, monkeypatch):
    """From then on it obeys restarts, also after its heartbeat has expired once."""
    store, lane, beats = beating
    assert lane.since == 0
    for now in (7.5, 8.5, 9.5):
        monkeypatch.setattr(heartbeat, 'beat', lambda *_, now=now: ([Pulse(False, 0, -1)], now))
        beats.beat()
    assert len(store.registered) == 3
    assert lane.since == 7500


def test_lost_answer_to_a_later_registration(beating):
    """When the answer of a registration was lost, the next one finds the claims that no longer existed."""
    store, lane, beats = beating
    beats.beat()
    lane.store.claim = lambda *_: Haul(1, 0, None, 0, [b'a', b'b'])
    lane.finisher = types.SimpleNamespace(acknowledged=lambda *_: None, unanswered=lambda *_: None)
    _, claims = lane.claim(None, 2, 0, False, [])
    told = []
    for c in claims:
        assert lane.begin(c, told.append)
    store.alive, store.fails, store.tokens_held = False, UnansweredError('lost'), ['1-2', '7-1']
    with pytest.raises(UnansweredError):
        beats.beat()
    assert [c.lost for c in claims] == [False, False]
    store.fails = None
    beats.beat()
    assert len(store.registered) == 3
    assert [c.lost for c in claims] == [True, False]
    assert told == ['lost']
    assert len({value for _, value in store.registered}) == 3  # each registration has its own value
    assert {life for life, _ in store.registered} == {15_000}


@pytest.mark.parametrize(('life', 'answer'), [(15.0, 1.875), (2.0, 0.5), (400.0, 5.0)])
def test_a_living_worker_is_not_taken_for_dead(monkeypatch, life, answer):
    """It renews its heartbeat within a quarter of its life, and gives up a call early enough for another attempt."""
    store = Store()
    monkeypatch.setattr(heartbeat, 'beat', lambda *_: ([Pulse(store.alive, store.claims, -1)], time.time()))
    beats = Heartbeat([Lane(store, False)], life, 'host:1', Contact(life), lambda: None)
    assert beats.link.timeout == answer
    pauses = []

    def wait(pause):
        pauses.append(pause)
        if len(pauses) == 200:
            beats.stop()

    beats._poke = types.SimpleNamespace(clear=lambda: None, set=lambda: None, wait=wait)
    beats.run()
    assert max(pauses) <= life / 4


def test_claims_whose_call_overlaps_a_registration_are_given_back(beating):
    store, lane, beats = beating
    beats.beat()
    lane.finisher = types.SimpleNamespace(acknowledged=lambda *_: None)

    def claim(*_):
        store.alive = False
        beats.beat()
        return Haul(1, 0, None, 0, [b'a'])

    lane.store.claim = claim
    assert lane.claim(None, 1, 0, False, [])[1] == []
    store.claims, store.tokens_held = 1, ['1-1']
    beats.beat()
    assert store.released == ['1-1']


@pytest.mark.parametrize(('intent', 'looks'), [(False, [True, False, False, False, True]), (True, [True] * 5)])
def test_a_pause_has_each_heartbeat_look_for_its_end(beating, monkeypatch, intent, looks):
    """Signals may be lost, and an idle worker makes no claims that would tell it."""
    store, lane, beats = beating
    seen = []
    monkeypatch.setattr(
        heartbeat, 'beat', lambda *args: (seen.append(args[-1]), ([Pulse(True, 0, -1)], time.time()))[1]
    )
    lane.intent = intent
    for _ in looks:
        beats.beat()
    assert seen == looks


def test_a_worker_that_was_away_does_not_judge_others(beating):
    """Its heartbeat has expired because Redis or this machine was away, and then others may have been away too."""
    store, lane, beats = beating
    beats.beat()
    assert beats.contact.unbroken() is not None
    store.alive, before = False, beats.contact.unbroken()
    beats.beat()
    assert beats.contact.unbroken() is None
    beats.beat()
    assert beats.contact.unbroken() > before


@pytest.mark.parametrize(
    ('monotonic', 'wall', 'fresh'),
    [(0, 0, True), (11.5, 11.5, True), (12.5, 0, False), (0, 12.5, False), (12.5, 12.5, False)],
)
def test_both_clocks_say_whether_a_heartbeat_is_fresh(monotonic, wall, fresh):
    """The monotonic clock stops while a machine is suspended, and the wall clock may be set back."""
    lane = Lane(Store(), False)
    assert not lane.fresh(15.0)
    lane.confirmed = time.monotonic() - monotonic, time.time() - wall
    assert lane.fresh(15.0) == fresh


@pytest.mark.parametrize('life', [0.5, 15.0])
def test_a_heartbeat_is_renewed_for_its_life(monkeypatch, life):
    """The life is in ms. Claims are counted if there are any, or may be."""
    asked, store = [], Store()
    monkeypatch.setattr(
        heartbeat, 'beat', lambda link, stores, *how: (asked.append(how), ([Pulse(True, 0, -1)], time.time()))[1]
    )
    lane = Lane(store, False)
    beats = Heartbeat([lane], life, 'host:1', Contact(life), lambda: None)
    beats.beat()
    beats.beat()
    lane.known = 1
    beats.beat()
    lane.known, lane.unclear = 0, time.monotonic()
    beats.beat()
    lane.unclear = time.monotonic() - 601
    beats._beats = 5
    beats.beat()
    ms = int(life * 1000)
    assert asked == [(ms, False, True), (ms, False, False), (ms, True, True), (ms, True, True), (ms, False, False)]
    assert store.registered == [(ms, 'host:1:1')]


def test_a_heartbeat_that_fails_is_tried_again_soon_and_told_of(beating, monkeypatch, caplog):
    _, _, beats = beating
    caplog.set_level('INFO')
    pauses, looks = [], [UnreachableError('away'), UnreachableError('away'), None]

    def beat():
        answer = looks.pop(0)
        if answer:
            raise answer

    monkeypatch.setattr(beats, 'beat', beat)
    beats._stop = types.SimpleNamespace(is_set=lambda: not looks, wait=pauses.append)
    beats._poke = types.SimpleNamespace(clear=lambda: None, wait=lambda _: None)
    beats.run()
    assert len(pauses) == 2
    assert max(pauses) <= 15.0 / 8
    assert [r.getMessage() for r in caplog.records] == [
        'cannot renew the heartbeat; trying again: away',
        'heartbeat renewed',
    ]
