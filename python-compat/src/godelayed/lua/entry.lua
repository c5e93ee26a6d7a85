-- entry: write or remove a periodic entry, if it is still as it was read.
-- KEYS  1 periodic hash   2 ticks set   3 history list
-- ARGV  1 entry   2 its value as it was read (empty: there is none)   3 value to write (empty: remove the entry)
--       4 when it ticks next, ms since 1970 (empty: never)
-- Returns 1, or 0 when the entry has changed.
-- O(log n). Works on a full Redis: its first write is a ZREM.
local value = redis.call('HGET', KEYS[1], ARGV[1]) or ''
-- Fail on keys of another type before anything is removed.
redis.call('ZCARD', KEYS[2])
redis.call('LLEN', KEYS[3])
if value ~= ARGV[2] then return 0 end
if ARGV[4] == '' then
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  -- After this write a full Redis also allows those that follow.
  redis.call('ZREM', KEYS[2], '')
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('UNLINK', KEYS[3])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return 1
