-- progress: note how far an active task is, or forget it.
-- KEYS  1 processing hash   2 completed set   3 results hash
-- ARGV  1 token   2 id   3 what it reports, or '' to forget that
-- Returns 1 if the claim stands, 0 if it does not (nothing is written then).
-- O(log m). Works on a full Redis: its first write is an HDEL or ZREM. What was kept of an older task of the same id makes place.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
local completed = redis.call('ZSCORE', KEYS[2], ARGV[2])
if ARGV[3] == '' then
  if not completed then redis.call('HDEL', KEYS[3], ARGV[2]) end
  return 1
end
redis.call('HLEN', KEYS[3]) -- a key of another type is an error before anything is removed
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
return 1
