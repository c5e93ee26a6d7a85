"""What the three programs share: the arguments that name a queue, and the queue of the real package that these
arguments give."""

import redis
from delayed.queue import Queue


def add_queue_arguments(parser, nargs=None):
    parser.add_argument('--url', required=True, help='redis://host:port/db')
    parser.add_argument('--queue', required=True, nargs=nargs, metavar='NAME', help='name of the queue')
    parser.add_argument('--keep-alive-timeout', type=int, default=60, metavar='SECONDS',
                        help="life of a worker's heartbeat, whole seconds (the package breaks on others); 60")
    parser.add_argument('--dequeue-timeout', type=float, default=1, metavar='SECONDS',
                        help='how long one blocking pop waits; 1')


def connect(args, client=redis.Redis):
    return client.from_url(args.url)


def open_queue(args, conn, name=None, cls=Queue):
    return cls(
        name or args.queue, conn, dequeue_timeout=args.dequeue_timeout, keep_alive_timeout=args.keep_alive_timeout
    )
