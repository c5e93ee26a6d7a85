-- lapse: drop locks that have expired.
-- KEYS  1 locks hash
-- ARGV  1 cursor, '0' to begin with   2 how many locks to look at, at most 1,000
-- Returns {cursor to go on with, '0' after the last lock; locks looked at; locks dropped}.
-- O(n). Works on a full Redis: its first write is an HDEL. A server may look at a few more locks than it is told to,
--       and at all of a small hash.
--#include clock
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local found, over = page[2], {}
for i = 1, #found, 2 do
  local expiry = tonumber(string.match(found[i + 1], '^(%d+) ') or 0)
  if expiry <= now then over[#over + 1] = found[i] end
end
if #over > 0 then redis.call('HDEL', KEYS[1], unpack(over)) end
return {page[1], #found / 2, #over}
