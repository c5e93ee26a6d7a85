-- progress: write the progress report of an active task, or remove it.
-- KEYS  1 processing hash   2 completed set   3 results hash
-- ARGV  1 token   2 id   3 the report, or '' to remove it
-- Returns 1 if the claim stands, 0 if it does not (nothing is written then).
-- O(log m). Works on a full Redis: its first write is an HDEL or ZREM. A report replaces the result of an older task
--       of the same id.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
local completed = redis.call('ZSCORE', KEYS[2], ARGV[2])
if ARGV[3] == '' then
  if not completed then redis.call('HDEL', KEYS[3], ARGV[2]) end
  return 1
end
redis.call('HLEN', KEYS[3]) -- fails on a key of another type before anything is removed
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
return 1
