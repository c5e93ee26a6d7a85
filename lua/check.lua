-- check: say what there is to do on queues of one slot.
-- KEYS  for each queue: pending list, scheduled set, retry set, parked set, groups set, suspects list
-- ARGV  none
-- Returns for each queue five numbers: pending tasks, ms until the next scheduled task or retry is due (0 overdue,
--       -1 none), parked tasks, ms until the next group is due, pending suspects.
-- O(queues). Reads only; one command for a queue that is empty.
--#include number
local reply, at = {}, nil
for i = 1, #KEYS, 6 do
  local pending, wait, parked, group, suspects = 0, -1, 0, -1, 0
  if redis.call('EXISTS', KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3], KEYS[i + 4], KEYS[i + 5]) > 0 then
    if not at then
      --#include clock
      at = now
    end
    pending, parked = redis.call('LLEN', KEYS[i]), redis.call('ZCARD', KEYS[i + 3])
    for j = i + 1, i + 2 do
      local first = redis.call('ZRANGE', KEYS[j], 0, 0, 'WITHSCORES')
      if first[2] then
        local ms = math.max(0, number(first[2]) - at)
        if wait < 0 or ms < wait then wait = ms end
      end
    end
    local first = redis.call('ZRANGE', KEYS[i + 4], 0, 0, 'WITHSCORES')
    if first[2] then group = math.max(0, number(first[2]) - at) end
    suspects = redis.call('LLEN', KEYS[i + 5])
  end
  reply[#reply + 1] = pending
  reply[#reply + 1] = math.ceil(wait)
  reply[#reply + 1] = parked
  reply[#reply + 1] = math.ceil(group)
  reply[#reply + 1] = suspects
end
return reply
