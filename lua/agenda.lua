-- agenda: list the periodic entries that are due.
-- KEYS  1 periodic hash   2 ticks set
-- ARGV  1 how many entries to skip   2 most entries, at most 100
-- Returns {time in ms, ms until the next entry is due (-1 none), entry, value, entry, value ...}: the due entries. A
--       value is empty if the entry has none.
-- O(n log m). Reads only.
--#include number
--#include clock
local names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', ARGV[1], ARGV[2])
local after = '(' .. string.format('%.0f', now)
local ahead = redis.call('ZRANGEBYSCORE', KEYS[2], after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local reply = {now, -1}
if ahead[2] then reply[2] = math.ceil(number(ahead[2]) - now) end
if #names == 0 then
  redis.call('HLEN', KEYS[1])
  return reply
end
local values = redis.call('HMGET', KEYS[1], unpack(names))
for i = 1, #names do
  reply[2 * i + 1] = names[i]
  reply[2 * i + 2] = values[i] or ''
end
return reply
