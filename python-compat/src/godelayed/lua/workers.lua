-- workers: read the ids of the workers of queues of one slot.
-- KEYS  for each queue: worker set
-- ARGV  1 most ids in all
-- Returns for each queue the ids. Instead of ids that would be too many in all, there is nil.
-- O(workers). Reads only.
local reply, room = {}, tonumber(ARGV[1])
for i = 1, #KEYS do
  -- All of them in one command, if they are not more.
  local scanned = redis.call('SSCAN', KEYS[i], '0', 'COUNT', room + 1)
  reply[i] = scanned[1] == '0' and #scanned[2] <= room and scanned[2]
  if reply[i] then room = room - #scanned[2] end
end
return reply
