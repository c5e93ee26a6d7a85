-- forget: forget a worker that stops, or a dead one, unless it still holds claims.
-- KEYS  1 heartbeat   2 worker set   3 processing hash   4 claims hash   5 control hash   6 functions hash
-- ARGV  1 worker id   2 1 if it stops, which ends its heartbeat, else 0
-- Returns 1 if the worker is forgotten, 0 if it holds claims, or lives and does not stop.
-- O(1). Works on a full Redis: its first write is an SREM.
if redis.call('HLEN', KEYS[3]) > 0 then return 0 end
if ARGV[2] ~= '1' and redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[5])
redis.call('HLEN', KEYS[6])
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[1], KEYS[4])
redis.call('HDEL', KEYS[5], 'worker:' .. ARGV[1])
redis.call('HDEL', KEYS[6], ARGV[1], ARGV[1] .. ' status')
return 1
