-- register: make a worker known, or known again after its heartbeat expired.
-- KEYS  1 heartbeat   2 worker set   3 processing hash
-- ARGV  1 life, ms   2 worker id   3 value of the heartbeat
-- Returns the tokens of the worker's claims that stand.
-- O(claims). Works on a full Redis: its first write is an SREM.
local tokens = redis.call('HKEYS', KEYS[3])
redis.call('SREM', KEYS[2], '')
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[1])
return tokens
