-- trim: delete the oldest tasks, at most 1,000, of a sorted set SORTED that has more than MOST, with their messages in
-- TASKS and what is known of them in INFO. Uses count.
local excess = redis.call('ZCARD', SORTED) - MOST
if excess > 0 then
  local old = redis.call('ZRANGE', SORTED, 0, math.min(excess, 1000) - 1)
  redis.call('ZREM', SORTED, unpack(old))
  redis.call('HDEL', TASKS, unpack(old))
  redis.call('HDEL', INFO, unpack(old))
  count('trimmed', #old)
end
