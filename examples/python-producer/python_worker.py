#!/usr/bin/env python
"""Runs the Python calls. Stop it with SIGHUP, which is the signal the package listens to."""

import os

import redis
from delayed.queue import Queue
from delayed.worker import Worker

conn = redis.Redis.from_url(os.environ.get('REDIS_URL', 'redis://localhost:6379/0'))

# The package draws a worker's id at random and gives it 16 bits; two dead workers with one id lose a task, so take more.
Worker(Queue('py-jobs', conn), id_bits=63).run()
