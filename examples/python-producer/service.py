#!/usr/bin/env python
"""A Python service that delays calls of Go functions and of its own functions with the package `delayed` from PyPI."""

import os

import redis
from delayed.delay import delayed
from delayed.queue import Queue
from delayed.task import GoTask

import tasks

conn = redis.Redis.from_url(os.environ.get('REDIS_URL', 'redis://localhost:6379/0'))

# One queue for each language: the package's worker drops a Go task that it claims.
go_jobs = Queue('go-jobs', conn)
py_jobs = Queue('py-jobs', conn)


def upload(photo):
    """What a web handler would do after it has stored the photo."""
    # func Resize(ctx context.Context, photo string, size Size) error: a dict becomes the struct.
    go_jobs.enqueue(GoTask('images.Resize', (photo, {'Width': 320, 'Height': 200})))
    # func Tag(photo string, tags ...string): the variadic argument is a list.
    go_jobs.enqueue(GoTask('images.Tag', (photo, ['holiday', 'sea'])))
    # func Forget(photo string): a single argument needs no tuple.
    go_jobs.enqueue(GoTask('images.Forget', 'old-' + photo))
    # func Tidy(): no argument.
    go_jobs.enqueue(GoTask('images.Tidy'))

    # A function of this service, with three retries. Importing it is enough, tasks.py knows nothing of queues.
    delayed(py_jobs)(tasks.send_mail, retry=3).delay('ann@example.com', 'Your photo', body=photo)


if __name__ == '__main__':
    upload('beach.jpg')
    print('python: delayed 4 Go calls and 1 Python call', flush=True)
