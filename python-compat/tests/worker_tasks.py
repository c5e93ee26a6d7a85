"""Tasks for the tests of the worker. They record what they do in the list 'ran' of the Redis that TEST_REDIS names."""

import asyncio
import contextlib
import os
import signal
import time

import redis

import godelayed

client = redis.Redis.from_url(os.environ['TEST_REDIS'], socket_timeout=None)  # a task may wait for the test


def connect():
    """Connects each process before its first task: a task that is told to end while it connects would leave a
    connection to another database."""
    with contextlib.suppress(redis.exceptions.RedisError):
        client.ping()


os.register_at_fork(after_in_child=connect)


def note(*words):
    """Records that something happened."""
    client.rpush('ran', ' '.join(map(str, words)))


def await_word(key):
    """Waits until the test pushes to the list key."""
    client.blpop(key, 60)


@godelayed.task
def say(*args, **kwargs):
    note('say', *args, *(f'{k}={v}' for k, v in sorted(kwargs.items())))


@godelayed.task
def add(a, b=1):
    return a + b


@godelayed.task
def give(value):
    return value


@godelayed.task
def give_keys(key):
    return {key: {key: {1, 2}}}


@godelayed.task
async def add_later(a, b):
    await asyncio.sleep(0)
    return a + b


@godelayed.task(retry=2, backoff=[0])
def fail(text='no'):
    note('fail', godelayed.current().attempt)
    raise ValueError(text)


@godelayed.task(retry=5, backoff=lambda retried: 0)
def fail_times(n):
    attempt = godelayed.current().attempt
    note('try', attempt)
    if attempt <= n:
        raise ValueError(f'attempt {attempt}')
    return attempt


@godelayed.task
def discard():
    raise godelayed.Archive('not worth it')


@godelayed.task
def drop():
    raise godelayed.Drop('nobody needs it')


@godelayed.task
def snooze_once():
    if client.incr('snoozed') == 1:
        raise godelayed.Snooze(0)
    note('awake', godelayed.current().attempt)


@godelayed.task
def retry_in():
    try:
        raise ValueError('inner')
    except ValueError as e:
        if client.incr('retried') == 1:
            raise godelayed.RetryIn(0) from e
    note('again', godelayed.current().attempt)


@godelayed.task
def hold(key='go'):
    note('holding')
    await_word(key)
    note('released')


@godelayed.task(timeout=1, retry=0)
def sleep_long():
    note('sleeping')
    time.sleep(120)


@godelayed.task(retry=0)
async def wait_long(how):
    try:
        note('waiting')
        if how == 'await':
            await asyncio.sleep(120)
        elif how == 'gather':
            await asyncio.gather(*(asyncio.sleep(120) for _ in range(20)))
        elif how == 'turn':
            while True:
                await asyncio.sleep(0)
        elif how == 'block':
            time.sleep(120)
        else:
            async for _ in ticks():
                pass
    except asyncio.CancelledError:
        note_surely('cancelled')
        raise
    except godelayed.TaskInterrupted:
        note_surely('interrupted')
        raise
    finally:
        await asyncio.sleep(0)


def note_surely(word):
    """Notes a word, even if the worker interrupts that because the task takes long to end on a busy machine."""
    try:
        note(word)
    except godelayed.TaskInterrupted:
        note(word)
        raise


async def ticks():
    while True:
        yield 1
        await asyncio.sleep(0.001)


@godelayed.task
def sleep_on(ignore=False):
    """Sleeps until it is told to end, or longer."""
    end = time.monotonic() + 120
    noted = False
    while time.monotonic() < end:
        try:
            if not noted:
                noted = True
                note('sleeping', os.getpid())  # the test that reads it may end the task before this returns
            time.sleep(120)
        except godelayed.TaskInterrupted as e:
            note('told', type(e).__name__)
            if not ignore:
                raise


@godelayed.task
def die(times=100):
    if client.incr('deaths') <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    note('survived')


@godelayed.task
def report():
    godelayed.current().progress(1, 2, 'half')
    note('reported')
    await_word('go')
    godelayed.current().progress(2, 2, 'whole')


@godelayed.task
def about():
    c = godelayed.current()
    note(
        c.id, c.queue, c.path, c.attempt, c.deaths, sorted(c.headers.items()), c.enqueued_at is not None, c.interrupted
    )


@godelayed.task(path='named:task')
def named():
    note('named')


def unregistered():
    note('unregistered')


@godelayed.task
def pid():
    note(os.getpid())


@godelayed.task
def hold_in_group():
    """Sends its process, and the one that has forked it, the signals that others may send to all processes of a worker.

    Records which of them end a program that it starts.
    """
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGUSR2, signal.SIGUSR1):
        os.kill(os.getpid(), sig)
        os.kill(os.getppid(), sig)
    ended = [os.system(f'kill -{name} $$') & 0x7F for name in ('INT', 'TERM', 'HUP', 'USR1', 'USR2', 'PIPE')]
    note('holding', *ended, signal.set_wakeup_fd(-1))
    await_word('go')
    note('released')


@godelayed.task
def crowd(key):
    """Records how many tasks of its kind are running."""
    note(key, client.incr(key))
    time.sleep(0.02)
    client.decr(key)


class Meeting:
    """Coroutines that wait for one another. It belongs to the event loop of the first one, as clients of servers do."""

    def __init__(self):
        self.here, self.loop, self.full = 0, None, asyncio.Event()


meeting = Meeting()


@godelayed.task(retry=0)
async def meet(n):
    """Returns once n calls are under way at once, with the process; all calls must be on one event loop."""
    loop = asyncio.get_running_loop()
    meeting.loop = meeting.loop or loop
    assert meeting.loop is loop
    meeting.here += 1
    if meeting.here >= n:
        meeting.full.set()
    await meeting.full.wait()
    meeting.here -= 1
    return os.getpid()


@godelayed.task(retry=0)
async def stubborn(how='swallow'):
    """Does not end when it is told to: it swallows that, or blocks the event loop."""
    note('stubborn')
    while True:
        try:
            if how == 'block':
                time.sleep(0.05)
            await asyncio.sleep(0.05)
        except BaseException:
            pass


@godelayed.task
async def patient():
    """Waits for the test, whatever happens to its process."""
    task = godelayed.current()
    note('patient', task.attempt, task.deaths)
    while not client.exists('go'):
        await asyncio.sleep(0.02)
    note('went')
    return 'went'


@godelayed.task
async def reports():
    """Reports its progress from a thread and from the event loop."""
    task = godelayed.current()
    await asyncio.gather(*(asyncio.to_thread(task.progress, i, 50) for i in range(50)))
    task.progress(50, 50)
    return task.attempt
