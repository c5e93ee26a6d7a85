-- workers: read the ids of the workers of queues of one slot.
-- KEYS  for each queue: worker set
-- ARGV  none
-- Returns for each queue the ids.
-- O(workers). Reads only.
local reply = {}
for i = 1, #KEYS do reply[i] = redis.call('SMEMBERS', KEYS[i]) end
return reply
