"""Redis cannot be told how tasks ended."""

import threading

import msgpack
from working import wait_for

from godelayed import Registry, Worker
from godelayed.worker.executors import CLAIM_LOT, PACE_MOST
from godelayed.worker.finish import MAX_ENDS_WAITING

WAIT = 60
TASKS = 6 * MAX_ENDS_WAITING


def test_no_claims_while_redis_is_not_told(redis):
    """A worker claims only so many tasks, because all of them would run again if it died, and goes on at once when it
    can tell Redis."""
    redis.set('q_parked', 'another type')
    redis.rpush('q', *[msgpack.packb(['unknown:f', [i]]) for i in range(TASKS)])
    w = Worker(redis, ['q'], registry=Registry(), processes=False, concurrency=4)
    running = threading.Thread(target=w.run)
    running.start()
    lane, executors = w._lanes[0], w._executors
    try:
        wait_for(lambda: lane.finisher.behind, 'the worker to be behind')
        for _ in range(2):  # the second time after something that wakes the fetcher
            w._fetcher.nudge(lane)
            wait_for(lambda: not (executors.ready or executors.running or executors.coming), 'what was claimed to end')
        claimed = TASKS - redis.llen('q')
        assert claimed <= MAX_ENDS_WAITING + PACE_MOST + CLAIM_LOT + 4
        assert w._fetcher._paused(lane)
        told = threading.Event()
        executors.signal, signal = told.set, executors.signal
        redis.delete('q_parked')
        assert told.wait(WAIT), 'the fetcher is not told'
        executors.signal = signal
        signal()
        wait_for(lambda: redis.zcard('q_parked') == TASKS, 'all tasks to be parked')
    finally:
        redis.delete('q_parked') if redis.type('q_parked') == b'string' else None
        w.stop()
        running.join(WAIT)
    assert not running.is_alive()
