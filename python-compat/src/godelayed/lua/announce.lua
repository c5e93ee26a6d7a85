-- announce: make a queue known to those who look for queues.
-- KEYS  1 registry
-- ARGV  1 name of the queue   2 1 if legacy workers share it, else 0   3 most queues
-- Returns 1 if that was news, 0 if it was known, -1 if the registry has no room.
-- O(1). A full Redis refuses it.
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known and known >= ARGV[2] then return 0 end
if not known and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return -1 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
