-- expire: delete completed tasks that were kept for long enough.
-- KEYS  1 completed set   2 results hash
-- ARGV  1 most tasks to delete, at most 1,000
-- Returns the number of tasks deleted.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
--#include clock
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
if #old == 0 then return 0 end
redis.call('HLEN', KEYS[2]) -- fails on a key of another type before anything is removed
redis.call('ZREM', KEYS[1], unpack(old))
redis.call('HDEL', KEYS[2], unpack(old))
return #old
