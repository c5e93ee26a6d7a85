-- pardon: forget expired revocations; after the last one, also a control hash that only holds a version of the past.
-- KEYS  1 revoked set   2 control hash
-- ARGV  1 most revocations to forget, at most 1,000
-- Returns their number.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
--#include clock
local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
local left = redis.call('ZCARD', KEYS[1]) - #over
-- A version of this millisecond stays: the next one would be equal, and workers would not see the change.
local version = redis.call('HGET', KEYS[2], 'version')
local silent = version and (tonumber(version) or 0) < now and redis.call('HLEN', KEYS[2]) == 1
if #over > 0 then redis.call('ZREM', KEYS[1], unpack(over)) end
if left == 0 and silent then redis.call('UNLINK', KEYS[2]) end
return #over
