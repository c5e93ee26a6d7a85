"""The producer against a Redis."""

import asyncio

import msgpack
import pytest
import redis.asyncio

import godelayed
import godelayed.aio
from godelayed.scripts import Script, script


def test_delay(redis):
    ref = godelayed.Queue('mail', redis).delay('example.com/app/mail.Welcome', 42, 'en')
    path, payload, meta = msgpack.unpackb(redis.lindex('mail', 0))
    assert (path, msgpack.unpackb(payload), meta['n'], meta['id']) == ('example.com/app/mail.Welcome', [42, 'en'], 2, ref.id)
    assert redis.lrange('mail_noti', 0, -1) == [b'1']


def test_delay_in_asyncio(server, redis):
    async def run():
        async with redis_asyncio(server) as client:
            return (await godelayed.aio.Queue('mail', client).delay('a.B', 1)).id

    assert asyncio.run(run()) == msgpack.unpackb(redis.lindex('mail', 0))[2]['id']


def redis_asyncio(server):
    return redis.asyncio.Redis(port=server.port)


def test_every_script_is_known_by_name():
    from importlib import resources

    import godelayed.scripts

    files = {f.name[:-4] for f in resources.files('godelayed').joinpath('lua').iterdir()}
    constants = {v.name for v in vars(godelayed.scripts).values() if isinstance(v, Script)}
    assert constants == files
    assert script('ack') is godelayed.scripts.ACK
    with pytest.raises(FileNotFoundError):
        _ = Script('nothing').source
