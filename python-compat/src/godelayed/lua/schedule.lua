-- schedule: file tasks until they are due.
-- KEYS  1 scheduled set   2 tasks hash   3 wake list
-- ARGV  1 'in' or 'at'   2 ms from now, or since 1970   3 id   4 message   ... further pairs, at most 1,000
-- Returns {1, due in ms}, or {0, position from 0 of the first pair whose id is taken} with nothing written.
-- O(n log m). A full Redis refuses it as a whole. 'in' is measured by the server's clock.
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local due = tonumber(ARGV[2])
if ARGV[1] == 'in' then due = due + time[1] * 1000 + math.floor(time[2] / 1000) end
local ids, tasks, dues = {}, {}, {}
for i = 3, #ARGV, 2 do
  local n = (i - 1) / 2
  ids[n] = ARGV[i]
  tasks[2 * n - 1], tasks[2 * n] = ARGV[i], ARGV[i + 1]
  dues[2 * n - 1], dues[2 * n] = due, ARGV[i]
end
local taken, seen = redis.call('HMGET', KEYS[2], unpack(ids)), {}
for i = 1, #ids do
  if taken[i] or seen[ids[i]] then return {0, i - 1} end
  seen[ids[i]] = true
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local woken = redis.call('LLEN', KEYS[3])
redis.call('HSET', KEYS[2], unpack(tasks))
redis.call('ZADD', KEYS[1], unpack(dues))
if (not first[2] or due < number(first[2])) and woken == 0 then
  redis.call('RPUSH', KEYS[3], '1')
end
return {1, due}
