-- workers: read the ids of the workers of queues of one slot.
-- KEYS  for each queue: worker set
-- ARGV  1 most ids in all
-- Returns for each queue the ids. Instead of ids that would be too many in all, there is nil.
-- O(workers). Reads only.
local reply, room = {}, tonumber(ARGV[1])
for i = 1, #KEYS do
  local ids = redis.call('SRANDMEMBER', KEYS[i], room + 1) -- all of them, if they are not more
  if #ids > room then reply[i] = false else reply[i], room = ids, room - #ids end
end
return reply
