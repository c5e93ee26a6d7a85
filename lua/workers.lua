-- workers: read the ids of the workers of queues of one slot.
-- KEYS  for each queue: worker set
-- ARGV  1 most ids in all
-- Returns for each queue the ids. Instead of ids that would be too many in all, there is nil.
-- O(workers). Reads only.
local reply, room = {}, tonumber(ARGV[1])
for i = 1, #KEYS do
  local count = redis.call('SCARD', KEYS[i])
  reply[i] = false
  if count <= room then
    reply[i], room = count > 0 and redis.call('SMEMBERS', KEYS[i]) or {}, room - count
  end
end
return reply
