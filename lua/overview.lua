-- overview: read how many tasks are in each state on queues of one slot, and their oldest pending tasks.
-- KEYS  for each queue: pending list, suspects list, scheduled set, retry set, parked set, archived set, completed set,
--       groups set, worker set, legacy processing hash, control hash, counters of the day
-- ARGV  1 most bytes of a message to return
-- Returns {ms since 1970, then for each queue {pending, suspects, scheduled, retry, parked, archived, completed,
--       groups, legacy claims, ids of workers, paused, weight, counters, oldest message, oldest suspect}}. A message
--       that is too large is only a size.
-- O(workers). Reads only.
--#include clock
local limit, reply = tonumber(ARGV[1]), {now}
for i = 1, #KEYS, 12 do
  local row = {}
  row[1], row[2] = redis.call('LLEN', KEYS[i]), redis.call('LLEN', KEYS[i + 1])
  row[3], row[4] = redis.call('ZCARD', KEYS[i + 2]), redis.call('ZCARD', KEYS[i + 3])
  row[5], row[6] = redis.call('ZCARD', KEYS[i + 4]), redis.call('ZCARD', KEYS[i + 5])
  row[7] = redis.call('ZCOUNT', KEYS[i + 6], '(' .. now, '+inf')
  row[8] = redis.call('ZCARD', KEYS[i + 7])
  row[9], row[10] = redis.call('HLEN', KEYS[i + 9]), redis.call('SMEMBERS', KEYS[i + 8])
  local control = redis.call('HMGET', KEYS[i + 10], 'paused', 'weight', 'gaps')
  row[11], row[12] = control[1], control[2]
  -- Gaps are in both lists; which has how many is not known.
  local gaps = tonumber(control[3] or 0) or 0
  row[2] = math.max(row[2] - math.max(gaps - row[1], 0), 0)
  row[1] = math.max(row[1] - gaps, 0)
  row[13] = redis.call('HGETALL', KEYS[i + 11])
  local oldest, suspect = redis.call('LINDEX', KEYS[i], 0), redis.call('LINDEX', KEYS[i + 1], 0)
  for j = 1, control[3] and 100 or 0 do
    if oldest ~= '-' then break end -- a gap that withdraw has left
    oldest = redis.call('LINDEX', KEYS[i], j)
  end
  row[14] = oldest and #oldest > limit and #oldest or oldest
  row[15] = suspect and #suspect > limit and #suspect or suspect
  reply[#reply + 1] = row
end
return reply
