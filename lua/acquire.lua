-- acquire: take a place of a semaphore, or keep one.
-- KEYS  1 semaphore
-- ARGV  1 holder   2 number of places   3 for how long the holder has its place, ms
-- Returns 1 if the holder has a place, 0 if all are taken.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
--#include clock
local has = redis.call('ZSCORE', KEYS[1], ARGV[1])
local out = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1000)
out[#out + 1] = ARGV[1]
redis.call('ZREM', KEYS[1], unpack(out))
if not has and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
