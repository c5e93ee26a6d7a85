"""Tasks of another module than worker_tasks, so that each worker knows only some."""

import os

import redis

import godelayed

client = redis.Redis.from_url(os.environ['TEST_REDIS'])


@godelayed.task
def tell(*args):
    client.rpush('ran', ' '.join(('tell', *map(str, args))))
