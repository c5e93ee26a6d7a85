-- lapse: drop locks that have expired.
-- KEYS  1 locks hash   2 locked set
-- ARGV  1 most locks to drop, at most 1,000
-- Returns their number.
-- O(n log m). Works on a full Redis: its first write is an HDEL.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[1])
if #names > 0 then
  redis.call('HDEL', KEYS[1], unpack(names))
  redis.call('ZREM', KEYS[2], unpack(names))
end
return #names
