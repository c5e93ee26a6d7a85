-- control: change one field of the control hash, and tell the queue's workers.
-- KEYS  1 control hash
-- ARGV  1 field   2 its value: 'now' for the time in ms, '' for none   3 channel of the queue's workers
-- Returns 1 if the field was there before, 0 if not.
-- O(1). Works on a full Redis: its first write is an HDEL.
--#include clock
-- It also rises when the hash was deleted in between.
local version = math.max(now, (tonumber(redis.call('HGET', KEYS[1], 'version') or 0) or 0) + 1)
local value = ARGV[2]
if value == 'now' then value = string.format('%.0f', now) end
local was = redis.call('HDEL', KEYS[1], ARGV[1])
if value ~= '' then redis.call('HSET', KEYS[1], ARGV[1], value) end
redis.call('HSET', KEYS[1], 'version', string.format('%.0f', version))
redis.call('PUBLISH', ARGV[3], 'control')
return was
