-- roster: read the heartbeats of workers, how much they have claimed, and what they have published of what they do.
-- KEYS  for each worker: heartbeat, processing hash, functions hash
-- ARGV  1 most bytes of a status; 0: none is read   2... for each worker the field of its status, at most 100
-- Returns for each worker {value of the heartbeat, how long that lasts if it is not renewed, ms; claims, status}. The
--       value is nil if there is no heartbeat, and so is a status that is missing or too large.
-- O(workers). Reads only.
local limit, fields, reply = tonumber(ARGV[1]), {}, {}
for i = 2, #ARGV do fields[i - 1] = ARGV[i] end
for i = 1, #KEYS, 3 do
  local row = {redis.call('GET', KEYS[i]), redis.call('PTTL', KEYS[i]), redis.call('HLEN', KEYS[i + 1]), false}
  local field = fields[#reply + 1]
  if limit > 0 and redis.call('HSTRLEN', KEYS[i + 2], field) <= limit then
    row[4] = redis.call('HGET', KEYS[i + 2], field)
  end
  reply[#reply + 1] = row
end
return reply
