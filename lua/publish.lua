-- publish: note which functions a worker runs.
-- KEYS  1 heartbeat   2 functions hash
-- ARGV  1 worker id   2 its functions
-- Returns 1 if they are noted, 0 if the worker is not registered.
-- O(1). Works on a full Redis: its first write is an HDEL.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 1
