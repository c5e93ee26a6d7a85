-- hasten: make groups due now.
-- KEYS  1 groups set   2 wake list
-- ARGV  1... groups, at most 1,000
-- Returns how many of them there were.
-- O(n log m). Works on a full Redis: its first write is an LTRIM.
--#include clock
redis.call('ZCARD', KEYS[1]) -- fails on a key of another type before anything is written
redis.call('LTRIM', KEYS[2], 0, 0)
local found = 0
for i = 1, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZADD', KEYS[1], now, ARGV[i])
    found = found + 1
  end
end
if found > 0 and redis.call('LLEN', KEYS[2]) == 0 then redis.call('RPUSH', KEYS[2], '1') end
return found
