"""What a worker receives and reports besides its claims: signals, progress, and log lines when it stops."""

import re
import threading
import time
import types

import msgpack
import pytest
from working import wait_for

from godelayed import Worker
from godelayed.registry import Function, Registry
from godelayed.worker import follow, mover
from godelayed.worker.follow import Listener
from godelayed.worker.lane import Lane
from godelayed.worker.link import ReplyError, Source, UnansweredError
from godelayed.worker.mover import Mover
from godelayed.worker.report import Reporter
from godelayed.worker.slot import Todo
from godelayed.worker.store import Acked, Store

OPEN = {'send': lambda *_: None, 'current': True, 'dials': 1}  # a link with a connection


@pytest.mark.parametrize(
    ('kind', 'data', 'told'),
    [
        (b'subscribe', 1, ['look', 'parked ']),
        (b'message', b'control', ['look']),
        (b'message', b'parked m:f', ['parked m:f']),
        (b'message', b'cancel x', ['cancel x']),
        (b'message', b'what comes with another version', []),
    ],
)
def test_a_subscription_that_begins_makes_up_for_what_was_missed(lane, kind, data, told):
    heard = []
    lane.store.keys, lane.look = (
        types.SimpleNamespace(signals='q_signals', watch='q_watch'),
        lambda: heard.append('look'),
    )
    listener = Listener(
        [lane], lambda lane, id: heard.append(f'cancel {id}'), lambda path: heard.append(f'parked {path}')
    )

    def receive():
        listener._stop.set()
        return [kind, b'q_signals', data]

    listener.link = types.SimpleNamespace(**OPEN, readable=lambda _: True, receive=receive)
    listener._session()
    assert heard == told


def test_of_many_reports_ten_a_second_are_sent(lane):
    r, (c, other) = Reporter('w'), lane.open()
    r._thread = 'another'  # another thread sends them
    for claim in (c, other):
        claim.message = types.SimpleNamespace(id='x')
    r._sent[c] = 50.0
    r.report(c, 1, 2, '')
    r.report(c, 2, 2, 'last')
    assert r._late == {c: 50.1}
    assert c.report == (2, 2, 'last')
    r.report(other, 1, 2, '')
    assert r._late[other] < 1  # may be sent at once


def test_what_is_over_or_has_no_id_reports_to_nobody(lane):
    r, (c, other) = Reporter('w'), lane.open()
    r._thread = 'another'
    c.message, other.message = types.SimpleNamespace(id=''), types.SimpleNamespace(id='x')
    lane.settle([other])
    for claim in (c, other):
        r.report(claim, 1, 2, '')
        assert (claim.report, r._late) == (None, {})


def test_nothing_is_reported_behind_the_end_of_a_task(lane):
    """A report that is being sent comes first, or it would remain after the task."""
    r, (c, _) = Reporter('w'), lane.open()
    c.message = types.SimpleNamespace(id='x', path='m:f', meta={}, retried=0, deaths=0)
    lane.store.now, order = lambda: 5, []
    sending, go = threading.Event(), threading.Event()

    def progress(*_):
        sending.set()
        assert go.wait(60)
        order.append('sent')
        raise UnansweredError('away')  # the claim does not end

    lane.store.progress = progress
    lane.store.link = lambda: types.SimpleNamespace(hang_up=lambda: None)
    r.report(c, 1, 2, '')
    assert sending.wait(60)
    r.report(c, 2, 2, '')
    closing = threading.Thread(target=lambda: (r.close(c), order.append('closed')))
    closing.start()
    wait_for(lambda: c not in r._late, 'the end of reports')
    go.set()
    closing.join(60)
    assert order == ['sent', 'closed']
    assert r._thread.is_alive()
    r.stop()
    r._thread.join(60)
    assert not r._thread.is_alive()


def test_a_listener_leaves_a_connection_that_does_not_answer(lane, monkeypatch):
    """It asks for an answer, because it is normal that nothing is published for a while."""
    lane.store.keys = types.SimpleNamespace(signals='q_signals', watch='q_watch')
    monkeypatch.setattr(follow, '_PING', 0)
    listener = Listener([lane], None, None)
    sent, readable = [], [False, True, False, False]

    def receive():
        return b'PONG'

    listener.link = types.SimpleNamespace(
        **{**OPEN, 'send': lambda *command: sent.append(command[0])},
        readable=lambda _: readable.pop(0),
        receive=receive,
    )
    listener._session()
    assert sent == ['SUBSCRIBE', 'PING', 'PING']
    assert readable == []


def test_a_listener_connects_anew_from_time_to_time(lane, monkeypatch):
    """The address may lead to another server by then."""
    now = [1000.0]
    monkeypatch.setattr(follow, 'time', types.SimpleNamespace(monotonic=lambda: now[0]))
    lane.store.keys = types.SimpleNamespace(signals='q_signals', watch='q_watch')
    listener = Listener([lane], None, None)

    def readable(_):
        now[0] += 10
        return True

    listener.link = types.SimpleNamespace(**OPEN, readable=readable, receive=lambda: b'PONG')
    listener._session()
    assert 240 <= now[0] - 1000 <= 370


def test_a_listener_pauses_between_two_connections_that_fail(lane, monkeypatch):
    """It begins at once when a connection has lasted as long as it should."""
    lane.store.keys = types.SimpleNamespace(signals='q_signals', watch='q_watch')
    listener, sessions, waits = Listener([lane], None, None), ['fails', 'fails', 'lasts', 'fails', 'last'], []

    def session():
        kind = sessions.pop(0)
        if kind == 'fails':
            raise UnansweredError('away')
        if kind == 'last':
            listener._stop.set()

    monkeypatch.setattr(listener, '_session', session)
    monkeypatch.setattr(listener._stop, 'wait', waits.append)
    listener.link = types.SimpleNamespace(hang_up=lambda: None)
    listener.run()
    assert len(waits) == 3
    assert min(waits) > 0


@pytest.mark.parametrize(('parked', 'left'), [(0, []), (1, ['new'])])
def test_parked_tasks_that_are_gone_are_not_looked_for(monkeypatch, parked, left):
    lane = Lane(types.SimpleNamespace(link=lambda: None, name='q', parked_page=lambda *_: [('new', None)]), False)
    lane.parked = ['old']
    m = Mover([lane], None, lambda *_: True, lambda: None, 10, types.SimpleNamespace(flush=lambda **_: None))
    monkeypatch.setattr(mover, 'check', lambda *_: ([Todo(0, -1, parked, -1)], None))
    m.look()
    assert lane.parked == left
    assert m.idle == (not left)


def test_tasks_that_are_due_and_too_large_are_archived_by_the_clock_of_redis():
    told, names = [], [str(i) for i in range(201)]
    store = types.SimpleNamespace(
        link=lambda: None,
        name='q',
        now=lambda: 5,
        condemn=lambda link, shelf, keep, tasks: told.append((shelf, keep, tasks)),
    )
    m = Mover([Lane(store, False)], None, None, None, 10, types.SimpleNamespace(say=lambda *_: None))
    m._archive(store, 'retry', [(name, 7) for name in names])
    assert {(shelf, keep, msgpack.unpackb(note)['at']) for shelf, keep, tasks in told for _, note, _ in tasks} == {
        ('retry', 10, 5)
    }
    assert [len(tasks) for _, _, tasks in told] == [100, 100, 1]
    assert [(id, lock) for _, _, tasks in told for id, _, lock in tasks] == [(name, '') for name in names]


@pytest.mark.parametrize(
    ('ask', 'reply'),
    [
        (lambda store, link: store.claim(link, 1, 1, 0, False, False, Acked()), [b'secret']),
        (lambda store, link: store.unpark(link, 1, 1, ['x']), [b'secret']),
        (lambda store, link: store.claims(link, 'q_processing:w', ['1-1']), [b'secret', b'secret']),
        (lambda store, link: store.release(link, [], ['1-1']), [b'secret', b'secret']),
    ],
)
def test_what_is_said_of_a_reply_of_another_form_quotes_no_message(redis, ask, reply):
    """It may contain arguments, and errors are logged."""
    with pytest.raises(ReplyError, match=f'expected .*, found {len(reply)}$'):
        ask(Store(Source(redis), '', 'q', 'w'), types.SimpleNamespace(run=lambda *_: reply))


def test_what_was_not_logged_yet_is_logged_at_the_stop(redis, q, caplog):
    """Each kind of line comes at most once a second, and the last one gives the number of all others."""
    registry = Registry()
    registry.add(Function('m:f', None))
    for _ in range(5):
        q.delay('m:unknown')
    Worker(redis, ['q'], registry=registry, processes=False, concurrency=1, stop_when_empty=True).run()
    lines = [r.getMessage() for r in caplog.records if 'm:unknown' in r.getMessage()]
    assert sum(int(found[1]) if (found := re.search(r'\((\d+) since', line)) else 1 for line in lines) == 5


def test_gathered_calls_without_a_go_worker_are_complained_of(monkeypatch, caplog):
    lane = Lane(types.SimpleNamespace(link=lambda: None, name='q'), False)
    m = Mover([lane], None, None, None, 10, types.SimpleNamespace(flush=lambda **_: None))
    now = time.monotonic()
    said = []
    for after, group in ((0, 0), (14, 5), (28, 0), (30, 0), (31, 0), (629, 0), (632, 0)):
        monkeypatch.setattr(mover, 'check', lambda *_, group=group: ([Todo(0, -1, 0, group)], None))
        monkeypatch.setattr(mover.time, 'monotonic', lambda after=after: now + after)
        m.look()
        said.append(caplog.text.count('start a Go worker'))
    assert said == [0, 0, 0, 1, 1, 1, 2]
