-- roster: read the heartbeats of workers, and how much they have claimed.
-- KEYS  for each worker: heartbeat, processing hash
-- ARGV  none
-- Returns for each worker {value of the heartbeat, how long that lasts if it is not renewed, ms; claims}. The value is
--       nil if there is no heartbeat.
-- O(workers). Reads only.
local reply = {}
for i = 1, #KEYS, 2 do
  reply[#reply + 1] = {
    redis.call('GET', KEYS[i]), redis.call('PTTL', KEYS[i]), redis.call('HLEN', KEYS[i + 1])
  }
end
return reply
