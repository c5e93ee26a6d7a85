"""URLs of Redis that the command takes."""

import pytest

from godelayed import ArgumentsError
from godelayed.address import client_of


@pytest.mark.parametrize(
    ('url', 'why'),
    [
        ('redis://localhost/0?foo=1', "unknown parameter 'foo': expected one of client_name, db, "),
        ('redis://localhost?decode_responses=true', 'unknown parameter'),
        ('redis://localhost?retry_on_timeout=true', 'unknown parameter'),
        ('redis://localhost?ssl_cert_reqs=none', 'one of rediss://'),
        ('rediss://localhost?ssl_cert_reqs=bogus', 'bogus'),
        ('rediss://localhost?ssl_check_hostname=maybe', 'expected true or false'),
        ('redis://localhost?socket_keepalive=1', 'expected true or false'),
        ('redis://localhost?socket_timeout=nan', 'expected seconds'),
        ('redis://localhost?socket_timeout=0', 'expected seconds'),
        ('redis://localhost?socket_connect_timeout=-1', 'expected seconds'),
        ('redis://localhost?socket_timeout=1&socket_timeout=2', 'given twice'),
        ('redis://localhost?socket_timeout=', 'has no value'),
        ('redis://localhost?max_connections=0', 'at least 1'),
        ('redis://localhost?health_check_interval=1.5', 'a whole number'),
        ('redis://localhost?protocol=9', 'protocol'),
        ('unix:///tmp/redis.sock?db=-1', 'a whole number'),
        ('redis://localhost?ca=x', "parameter 'ca' is one of rediss://"),
        ('redis://localhost?dial_timeout=2', 'a time such as 2s'),
        ('redis://localhost?pool_size=5&max_connections=5', 'given twice'),
        ('rediss://localhost?server_name=x', "unknown parameter 'server_name'"),
        ('redis://localhost/mail', 'a number of a database'),
        ('redis://localhost/1?db=1', 'given twice'),
        ('http://localhost', 'found http://'),
        ('localhost:6379', 'expected redis://'),
        ('', 'found none'),
        ('redis://localhost:port', 'special characters'),
        ('redis://[::1', 'special characters'),
    ],
)
def test_addresses_that_cannot_be(url, why):
    with pytest.raises(ArgumentsError, match='^--redis-url: ') as e:
        client_of(url, '--redis-url')
    assert why in str(e.value)


@pytest.mark.parametrize(
    'url',
    [
        'redis://:hunter2/345@host',
        'redis://:1/hunter2@host',
        'redis://u:x#hunter2@host',
        'redis://u:hunter2@host?a=b',
        'x://u:hunter2@h',
    ],
)
def test_passwords_are_not_shown(url):
    with pytest.raises(ArgumentsError) as e:
        client_of(url, 'REDIS_URL')
    assert 'hunter2' not in str(e.value)
    assert e.value.__cause__ is None


@pytest.mark.parametrize(
    'url',
    [
        'redis://localhost',
        'redis://user:p%40ss@localhost:6380/3?socket_timeout=2.5&client_name=mail&protocol=3',
        'rediss://localhost/?ssl_cert_reqs=none&ssl_check_hostname=False',
        'redis://localhost?protocol=2&max_connections=1&health_check_interval=0',
        'unix://user:pass@/tmp/redis.sock?db=2',
        'unix:///tmp/redis.sock?db=0',
    ],
)
def test_addresses(url):
    client_of(url, 'REDIS_URL').close()


def test_parameters_of_go_programs():
    url = 'rediss://localhost?ca=a.pem&cert=c.pem&key=k.pem&dial_timeout=1.5s&pool_size=7'
    pool = client_of(url, 'REDIS_URL').connection_pool
    found = pool.connection_kwargs
    names = 'ssl_ca_certs', 'ssl_certfile', 'ssl_keyfile', 'socket_connect_timeout'
    assert [found[n] for n in names] == ['a.pem', 'c.pem', 'k.pem', 1.5]
    assert pool.max_connections == 7
    found = client_of('unix:///tmp/redis.sock?dial_timeout=250ms', 'REDIS_URL').connection_pool.connection_kwargs
    assert found['socket_connect_timeout'] == 0.25
