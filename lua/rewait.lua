-- rewait: wake a waiting worker, so that it waits again on other keys.
-- KEYS  1 rewait list
-- ARGV  1 ms after which nobody can be waiting any more
-- Returns 1.
-- O(1). Works on a full Redis: its first write is an LTRIM.
redis.call('LTRIM', KEYS[1], 1, 0)
redis.call('RPUSH', KEYS[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
