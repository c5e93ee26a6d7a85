-- schedule: file tasks until they are due.
-- KEYS  1 scheduled set   2 tasks hash   3 wake list
-- ARGV  for each task, at most 1,000: ms since 1970 or '+' and ms from now, id, message
-- Returns {1, number of tasks}, or {0, position from 0 of the first task whose id is taken} with nothing written.
-- O(n log m). A full Redis refuses it as a whole. '+' is measured by the server's clock.
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids, tasks, dues, earliest = {}, {}, {}, false
for i = 1, #ARGV, 3 do
  local n, due = (i + 2) / 3, ARGV[i]
  if string.sub(due, 1, 1) == '+' then due = now + tonumber(string.sub(due, 2)) end
  ids[n] = ARGV[i + 1]
  tasks[2 * n - 1], tasks[2 * n] = ARGV[i + 1], ARGV[i + 2]
  dues[2 * n - 1], dues[2 * n] = due, ARGV[i + 1]
  earliest = math.min(earliest or tonumber(due), tonumber(due))
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
if (not first[2] or earliest < number(first[2])) and woken == 0 then
  redis.call('RPUSH', KEYS[3], '1')
end
return {1, #ids}
