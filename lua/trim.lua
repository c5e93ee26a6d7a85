-- trim: delete archived tasks that are too old or too many.
-- KEYS  1 archived set   2 tasks hash   3 info hash   4 counters of the day
-- ARGV  1 life of the counters, s   2 most archived tasks   3 most tasks to delete, at most 1,000
-- Returns the number of tasks deleted.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
--#include clock
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[3])
if #old == 0 then
  local excess = math.min(redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2]), tonumber(ARGV[3]))
  if excess <= 0 then return 0 end
  old = redis.call('ZRANGE', KEYS[1], 0, excess - 1)
end
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[4])
redis.call('ZREM', KEYS[1], unpack(old))
redis.call('HDEL', KEYS[2], unpack(old))
redis.call('HDEL', KEYS[3], unpack(old))
--#include count STATS=KEYS[4] LIFE=ARGV[1]
count('trimmed', #old)
return #old
