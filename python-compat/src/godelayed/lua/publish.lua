-- publish: note which functions a worker runs, or what it does.
-- KEYS  1 heartbeat   2 functions hash
-- ARGV  1 worker id, for its status with ' status' behind   2 its functions or its status
-- Returns 1 if that is noted, 0 if the worker is not registered.
-- O(1). Works on a full Redis: its first write is an HDEL.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 1
