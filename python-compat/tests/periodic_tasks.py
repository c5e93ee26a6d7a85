"""Tasks with periodic entries, for test_periodic."""

import os

import redis

import godelayed

app = godelayed.Delayed(queue='q', owner='tests')
client = redis.Redis.from_url(os.environ['TEST_REDIS'])


@app.periodic('@every 1s', name='every', args=(1,), kwargs={'x': 2})
@app.task
def tick(n, x=0):
    if client.incr(f'ticks {n}') == 1:
        client.rpush('ran', f'tick {n} x={x}')
