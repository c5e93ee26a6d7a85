-- count: count(name, n) adds n to a counter of the day. STATS is the key, LIFE its time to live in s.
local function count(name, n)
  if n > 0 and redis.call('HINCRBY', STATS, name, n) == n then redis.call('EXPIRE', STATS, LIFE) end
end
