-- unpark: move parked tasks into the processing hash of a worker that can run them.
-- KEYS  1 parked set   2 tasks hash   3 info hash   4 heartbeat   5 processing hash   6 claims hash   7 control hash
-- ARGV  1 batch number   2 most tasks, at most 500   3 most bytes of a message, and of all unless the first is larger
--       4... task ids, at most 500
-- Returns {1, ids looked at, version of the control hash or 0, message...}; {0, 0, 0} without heartbeat; {-1, 0, 0}
--       when the batch number was used before; {-2, 0, 0} when the queue is paused. In place of a message that is too
--       large stands its size: it is claimed as the others are.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
local most, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local pulse, control = redis.call('GET', KEYS[4]), redis.call('HMGET', KEYS[7], 'paused', 'version')
if not pulse then return {0, 0, 0} end
if control[1] then return {-2, 0, 0} end
if redis.call('HEXISTS', KEYS[5], ARGV[1] .. '-1') == 1 then return {-1, 0, 0} end
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[6])
local reply, ids, fields, seen, n, bytes = {1, 0, tonumber(control[2] or 0)}, {}, {}, {}, 0, 0
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
for i = 4, #ARGV do
  if n == most then break end
  if not seen[ARGV[i]] and redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    bytes = bytes + redis.call('HSTRLEN', KEYS[2], ARGV[i])
    if n > 0 and bytes > limit then break end
    seen[ARGV[i]] = true
    ids[#ids + 1] = ARGV[i]
    local message = redis.call('HGET', KEYS[2], ARGV[i])
    if message then
      n = n + 1
      reply[3 + n] = #message > limit and #message or message
      fields[2 * n - 1], fields[2 * n] = ARGV[1] .. '-' .. n, message
    end
  end
  reply[2] = i - 3
end
if #ids == 0 then return reply end
--#include clock
redis.call('ZREM', KEYS[1], unpack(ids))
redis.call('HDEL', KEYS[2], unpack(ids))
redis.call('HDEL', KEYS[3], unpack(ids))
if n > 0 then
  redis.call('HSET', KEYS[5], unpack(fields))
  redis.call('HSET', KEYS[6], ARGV[1], now)
end
return reply
