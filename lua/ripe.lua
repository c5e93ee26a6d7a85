-- ripe: list groups that are due, and put them off for a while, so that only this caller combines their calls.
-- KEYS  1 groups set
-- ARGV  1 most groups, at most 1,000   2 ms after which they are due again
-- Returns {ms until the next group is due (0 overdue, -1 none), group...}.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
--#include number
--#include clock
local names = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
local reply, scores = {0}, {}
for i = 1, #names do
  reply[i + 1] = names[i]
  scores[2 * i - 1], scores[2 * i] = now + tonumber(ARGV[2]), names[i]
end
if #names > 0 then
  redis.call('ZREM', KEYS[1], '') -- removes nothing: a full Redis allows it, and what follows
  redis.call('ZADD', KEYS[1], unpack(scores))
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
reply[1] = -1
if first[2] then reply[1] = math.ceil(math.max(0, number(first[2]) - now)) end
return reply
