-- workers: read the ids of the workers of queues of one slot.
-- KEYS  for each queue: worker set
-- ARGV  1 most ids in all
-- Returns for each queue the ids. Instead of ids that would be too many in all, there is nil.
-- O(workers). Reads only.
local reply, room = {}, tonumber(ARGV[1])
for i = 1, #KEYS do
  local n = redis.call('SCARD', KEYS[i])
  reply[i] = n <= room and redis.call('SMEMBERS', KEYS[i])
  if reply[i] then room = room - n end
end
return reply
