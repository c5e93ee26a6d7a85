-- schedule: file tasks until they are due.
-- KEYS  1 scheduled set   2 tasks hash   3 wake list
-- ARGV  for each task, at most 500: ms since 1970 or '+' and ms from now, id, message
-- Returns {1, number of tasks}, or {0, position from 0 of the first task whose id is taken} with nothing written.
-- O(n log m). A full Redis refuses it as a whole. '+' is measured by the server's clock.
--#include number
--#include clock
-- As text, because Redis writes each number with 17 digits, which takes as long as all the rest.
local last, text, earliest
local ids, tasks, dues, n = {}, {}, {}, 0
for i = 1, #ARGV, 3 do
  local due, id = ARGV[i], ARGV[i + 1]
  if due ~= last then
    local at = tonumber(due)
    last, text = due, due
    if string.byte(due) == 43 then -- +
      at = now + tonumber(string.sub(due, 2))
      text = string.format('%.0f', at)
    end
    if not earliest or at < earliest then earliest = at end
  end
  n = n + 1
  ids[n] = id
  tasks[2 * n - 1], tasks[2 * n] = id, ARGV[i + 2]
  dues[2 * n - 1], dues[2 * n] = text, id
end
local taken, seen = redis.call('HMGET', KEYS[2], unpack(ids)), {}
for i = 1, n do
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
return {1, n}
