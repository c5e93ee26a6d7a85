"""The order of events when a worker stops: its threads must not miss that they must end."""

import signal
import threading

import pytest
from working import left, wait_for

import godelayed
from godelayed import cli
from godelayed.registry import Function, Registry
from godelayed.worker import Worker
from godelayed.worker.contact import Contact
from godelayed.worker.finish import Finisher
from godelayed.worker.heartbeat import Heartbeat
from godelayed.worker.lane import Lane
from godelayed.worker.lines import Lines
from godelayed.worker.link import Link, Source, UnansweredError, UnreachableError
from godelayed.worker.mover import Mover
from godelayed.worker.store import Store


class Poke(threading.Event):
    """A poke that is cleared just after its thread was told to stop, which had set it.

    A thread that waits for another poke would wait for ever.
    """

    def __init__(self, stop):
        super().__init__()
        self._stop = stop

    def clear(self):
        self._stop()
        super().clear()

    def wait(self, timeout=None):
        assert self.is_set(), f'waits {timeout} s although it was told to stop'
        return True


@pytest.fixture
def lane(redis):
    return Lane(Store(Source(redis), '', 'q', 'me'), False)


def test_heartbeat_that_is_stopped_between_two_beats_ends(lane):
    beats = Heartbeat([lane], 15.0, 'host:1', Contact(15.0), lambda: None)
    beats._poke = Poke(beats.stop)
    beats.run()
    lane.store.unregister(beats.link)


def test_mover_that_is_stopped_between_two_looks_ends(lane, monkeypatch):
    mover = Mover([lane], lambda *_: None, lambda *_: False, lambda: None, 0, Lines())
    monkeypatch.setattr(mover.link, 'cut', lambda: None)  # it is called later
    mover._poke = Poke(mover.stop)
    mover.run()


def test_mover_that_is_stopped_between_two_attempts_ends(lane, monkeypatch):
    """The mover waits for a while when Redis is away. A stop ends that wait, and no further look begins."""
    mover, looks = Mover([lane], lambda *_: None, lambda *_: False, lambda: None, 0, Lines()), []

    def look():
        looks.append(1)
        raise UnansweredError('away')

    monkeypatch.setattr(mover, 'look', look)
    monkeypatch.setattr(mover.complaints, 'trouble', lambda *_: mover.stop())  # while it is about to wait
    monkeypatch.setattr('time.sleep', lambda s: pytest.fail(f'sleeps for {s} s, whatever happens'))
    mover.run()
    assert looks == [1]


def test_a_mover_whose_look_is_cut_off_by_the_stop_complains_of_nothing(lane, monkeypatch, caplog):
    mover = Mover([lane], lambda *_: None, lambda *_: False, lambda: None, 0, Lines())

    def look():
        mover.stop()
        raise UnansweredError('cut off')

    monkeypatch.setattr(mover, 'look', look)
    mover.run()
    assert caplog.text == ''


@pytest.mark.parametrize('part', [0.0, 0.5, 1.0])
def test_a_mover_looks_at_least_every_five_seconds(lane, monkeypatch, part):
    """Others may enqueue tasks for later without a signal, or the signal may be lost."""
    mover = Mover([lane], lambda *_: None, lambda *_: False, lambda: None, 0, Lines())
    monkeypatch.setattr('random.random', lambda: part)
    assert 3.5 < mover.look()[0] <= 5.0
    mover.link.hang_up()


@pytest.mark.parametrize('connected', [True, False])
def test_no_command_begins_on_a_link_that_was_cut(redis, connected):
    link = Link(Source(redis))
    if connected:
        link.open()
    link.cut()
    with pytest.raises((UnansweredError, UnreachableError)):
        link.do('BLPOP', 'q_noti', 5)
    with pytest.raises(UnreachableError):
        link.do('BLPOP', 'q_noti', 5)


def test_a_signal_is_heard_from_the_moment_when_it_is_handled(monkeypatch):
    """Before, it ends the process as usual; a signal that has a handler while no thread reads it would be lost."""
    order = []
    monkeypatch.setattr(signal, 'set_wakeup_fd', lambda *_, **__: order.append('heard'))
    monkeypatch.setattr(signal, 'signal', lambda *_: order.append('handled'))
    cli._Program(None)._listen()
    assert order[0] == 'heard'
    assert order.count('heard') == 1


def test_signals_that_nobody_is_to_hear_end_no_worker(monkeypatch):
    """nohup starts a program that ignores HUP."""
    handled = []
    monkeypatch.setattr(signal, 'set_wakeup_fd', lambda *_, **__: None)
    monkeypatch.setattr(
        signal, 'getsignal', lambda number: signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL
    )
    monkeypatch.setattr(signal, 'signal', lambda number, _: handled.append(signal.Signals(number).name))
    cli._Program(None)._listen()
    assert set(handled) == set(cli._ORDERS) - {'SIGHUP'}


def test_queue_is_not_empty_while_redis_does_not_know_how_tasks_ended(q, redis, monkeypatch):
    """A task must be tried again at once.

    The worker looks several times for something to do before Redis learns that.
    """
    ran, looked, registry = [], [], Registry()

    def fails_once():
        ran.append(len(looked))
        if len(ran) == 1:
            raise godelayed.RetryIn(0)

    registry.add(Function('t:fails_once', fails_once))
    w = Worker(redis, ['q'], registry=registry, processes=False, concurrency=1, stop_when_empty=True)
    look, work = w._look_at_limits, Finisher.work

    def late_work(finisher):
        if ran:
            wait_for(lambda: len(looked) >= ran[0] + 5 or w.stop_reason, 'five looks')
        return work(finisher)

    monkeypatch.setattr(w, '_look_at_limits', lambda: (looked.append(1), look()))
    monkeypatch.setattr(Finisher, 'work', late_work)
    q.delay('t:fails_once')
    w.run()
    assert len(ran) == 2
    assert left(redis) == set()
