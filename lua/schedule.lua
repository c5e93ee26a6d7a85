-- schedule: file tasks until they are due.
-- KEYS  1 scheduled set   2 tasks hash   3 wake list
-- ARGV  1 'in' or 'at'   2 ms from now, or since 1970   3 id   4 message   ... further pairs, at most 1,000
-- Returns {1, due in ms}, or {0, position from 0 of the first pair whose id is taken} with nothing written.
-- O(n log m). A full Redis refuses it as a whole. 'in' is measured by the server's clock.
local time = redis.call('TIME')
local due = tonumber(ARGV[2])
if ARGV[1] == 'in' then due = due + time[1] * 1000 + math.floor(time[2] / 1000) end
local seen = {}
for i = 3, #ARGV, 2 do
  if seen[ARGV[i]] or redis.call('HEXISTS', KEYS[2], ARGV[i]) == 1 then return {0, (i - 3) / 2} end
  seen[ARGV[i]] = true
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
for i = 3, #ARGV, 2 do
  redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[1], due, ARGV[i])
end
if (not first[2] or due < tonumber(first[2])) and redis.call('LLEN', KEYS[3]) == 0 then
  redis.call('RPUSH', KEYS[3], '1')
end
return {1, due}
