-- lives: read how long heartbeats will last if they are not renewed.
-- KEYS  for each worker: heartbeat
-- ARGV  none
-- Returns for each worker the ms that are left, -2 when the heartbeat does not exist.
-- O(workers). Reads only.
local reply = {}
for i = 1, #KEYS do reply[i] = redis.call('PTTL', KEYS[i]) end
return reply
