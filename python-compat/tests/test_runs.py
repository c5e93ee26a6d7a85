"""The start and the end of a task's run: whether it may start, and what happens to it when its call has ended."""

import types

import msgpack
import pytest

from godelayed.registry import Function
from godelayed.worker.finish import ARCHIVE, CANCEL, RELEASE
from godelayed.worker.judge import Ended, Judge, Rules
from godelayed.worker.link import UnansweredError
from godelayed.worker.message import Message
from godelayed.worker.runs import Runs

NOW = 1_700_000_000_000


@pytest.fixture
def run(lane):
    """Runs, and a claim of a task; how the claim ends, and how many claims are lost."""

    def make(judge=None, **meta):
        c, _ = lane.open()
        c.message = Message(msgpack.packb(['m:f', [], {}, 0, {'id': 'x', **meta}]))
        c.function = Function('m:f', None)
        lane.now = lambda: NOW
        ends, lost = [], []
        lane.finisher.add = lambda *found: ends.extend(e.kind for e in found)
        lane.finisher.count_lost = lost.append
        lane.store.link = lambda: types.SimpleNamespace(hang_up=lambda: None)
        return Runs(judge or Judge('w', Rules()), None), c, ends, lost

    return make


def test_a_task_starts(run):
    r, c, ends, lost = run(to=2000)
    assert r.prepare(c, None)
    assert (ends, lost, c.began, c.limit) == ([], [], NOW, 2000)


def test_a_task_that_was_cancelled_while_it_waited_does_not_start(run, lane):
    lane.revoked = {'y'}
    r, c, ends, _ = run()
    assert r.prepare(c, None)
    lane.revoked = {'x'}
    assert not r.prepare(c, None)
    assert ends == [CANCEL]


@pytest.mark.parametrize('key', ['xp', 'dl'])
def test_a_task_that_is_too_late_does_not_start(run, key):
    r, c, ends, _ = run(**{key: NOW})
    assert not r.prepare(c, None)
    assert ends == [ARCHIVE]


def test_a_task_whose_claim_was_lost_while_it_waited_does_not_start(run, lane):
    """Another worker may have it."""
    r, c, ends, lost = run()
    known = lane.known
    lane.lose(c)
    assert not r.prepare(c, None)
    assert (ends, lost, c.settled, lane.known) == ([], [1], True, known - 1)


def test_a_task_starts_though_redis_cannot_free_its_lock(run, lane):
    """Then the lock ends with the task."""

    def unlock(*_, **__):
        raise UnansweredError('away')

    r, c, ends, _ = run(uk='k:a', us=True)
    lane.store.unlock = unlock
    assert r.prepare(c, None)
    assert (ends, c.lock) == ([], 'k:a')


def test_a_task_of_which_nobody_can_say_what_becomes_is_given_back(run, caplog):
    def failed(*_):
        raise ZeroDivisionError

    r, c, ends, _ = run(types.SimpleNamespace(failed=failed))
    assert not r.conclude(c, Ended(ok=False))
    assert ends == [RELEASE]
    assert 'm:f: cannot say what becomes of it' in caplog.text


@pytest.mark.parametrize('ok', [True, False])
def test_what_ends_behind_the_loss_of_its_claim_does_not_count(run, lane, ok):
    r, c, ends, lost = run(kr=5)
    lane.lose(c)
    assert not r.conclude(c, Ended(ok=ok))
    assert (ends, lost, c.settled) == ([], [1], True)


@pytest.mark.parametrize('died', [False, True])
def test_a_task_that_was_told_to_end_counts_as_cancelled(run, lane, died):
    """Redis may have forgotten the cancellation by then, and the task would run again."""
    r, c, _, _ = run()
    c.canceled, ends = True, []
    lane.finisher.add = ends.append
    if died:
        r.died(c, True)
    else:
        r.conclude(c, Ended(ok=False))
    assert [(e.kind, e.certain) for e in ends] == [(CANCEL, True)]


def test_a_task_that_drops_itself_is_done(run):
    r, c, ends, _ = run()
    assert r.conclude(c, Ended(ok=False, says='drop'))
    assert ends == []


def test_an_error_behind_the_timeout_says_so(run):
    ended = Ended(ok=False, interrupted='timeout', error='TaskTimeout: timeout')
    r, c, _, _ = run(types.SimpleNamespace(failed=lambda *_: None))
    c.limit = 2500
    r.conclude(c, ended)
    assert ended.error == 'it took longer than 2.5 s: TaskTimeout: timeout'
