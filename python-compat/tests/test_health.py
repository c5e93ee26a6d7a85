"""Health checks over HTTP."""

import http.client
import json
import time
import types

import pytest

from godelayed import ArgumentsError, health


@pytest.mark.parametrize(
    ('text', 'where'), [(':8080', ('', 8080)), ('localhost:0', ('localhost', 0)), ('[::1]:80', ('::1', 80))]
)
def test_addresses(text, where):
    assert health.address(text) == where


@pytest.mark.parametrize('text', ['', '8080', 'localhost', 'localhost:', 'localhost:http', ':65536'])
def test_what_is_no_address(text):
    with pytest.raises(ArgumentsError, match='expected host:port'):
        health.address(text)


@pytest.fixture
def worker():
    config = types.SimpleNamespace(seconds=lambda _: 60.0)
    return types.SimpleNamespace(id='w', state='running', busy=3, connected=True, in_touch=True, config=config)


@pytest.fixture
def ask(worker):
    """Asks for a path, and returns the status and the answer."""
    server = health.listen(worker, ('127.0.0.1', 0))

    def ask(path, method='GET'):
        c = http.client.HTTPConnection(*server.server_address, timeout=30)
        c.request(method, path)
        r = c.getresponse()
        body = r.read()
        c.close()
        return r.status, json.loads(body) if r.headers['Content-Type'] == 'application/json' and body else None

    yield ask
    server.shutdown()
    server.server_close()


def test_health_and_readiness(worker, ask, monkeypatch):
    fine = {'worker': 'w', 'state': 'running', 'busy': 3, 'connected': True, 'status': 'ok'}
    assert ask('/healthz') == ask('/readyz?x') == (200, fine)
    assert ask('/healthz', 'HEAD') == (200, None)
    assert ask('/other')[0] == 404
    assert ask('/healthz', 'POST')[0] == 501
    worker.state = 'paused'
    assert ask('/readyz') == (503, {**fine, 'state': 'paused', 'status': 'unavailable', 'reason': 'paused'})
    assert ask('/healthz')[0] == 200
    worker.state, worker.connected, worker.in_touch = 'running', False, False
    status, answer = ask('/readyz')
    assert (status, answer['reason']) == (503, 'not connected to Redis')
    assert ask('/healthz')[0] == 200  # it has only just started
    late = time.monotonic() + 61
    monkeypatch.setattr(health, 'time', types.SimpleNamespace(monotonic=lambda: late))
    status, answer = ask('/healthz')
    assert (status, answer['reason']) == (503, 'Redis has not confirmed the heartbeat within its life')
