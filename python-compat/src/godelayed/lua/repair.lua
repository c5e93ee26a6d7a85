-- repair: bring the notify list to the length of the pending list.
-- KEYS  1 pending list   2 notify list
-- ARGV  1 most notifications to add, at most 2,500
-- Returns {pending, notifications found, notifications added or, negative, removed}.
-- O(n). Works on a full Redis: its first write is an LTRIM.
local pending, found = redis.call('LLEN', KEYS[1]), redis.call('LLEN', KEYS[2])
local change = 0
if found > pending then
  change = pending - found
  if pending == 0 then
    redis.call('LTRIM', KEYS[2], 1, 0)
  else
    redis.call('LTRIM', KEYS[2], 0, pending - 1)
  end
else
  change = math.min(pending - found, tonumber(ARGV[1]))
  if change > 0 then
    local ones = {}
    for i = 1, change do ones[i] = '1' end
    redis.call('LTRIM', KEYS[2], 0, -1)
    redis.call('RPUSH', KEYS[2], unpack(ones))
  end
end
return {pending, found, change}
