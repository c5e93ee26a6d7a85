-- cancel: remove a filed task; revoke one that may be pending or active, so that it does not run.
-- KEYS  1 revoked set   2 control hash   3 scheduled set   4 retry set   5 parked set   6 archived set
--       7 completed set   8 tasks hash
--       9 info hash   10 results hash   11 locks hash   12 counters of the day
-- ARGV  1 id   2 ms that a task stays revoked   3 ms to keep a record of the cancellation, or 0   4 that record
--       5 channel on which to publish its end   6 channel of the queue's workers   7 life of the counters, s
--       8 most revocations to forget, at most 1,000   9 1 if the task was filed when the caller made the record
--       10 lock of the filed task, or ''
-- Returns 2 if it was removed, 1 if it may be pending or active and is revoked, 0 if it has ended, 3 if it was filed
--       after the caller looked.
-- O(log m). Works on a full Redis: its first write is a ZREM.
--#include number
--#include clock
local id, keep = ARGV[1], tonumber(ARGV[3])
-- Read everything before the first write.
local scheduled, retrying = redis.call('ZSCORE', KEYS[3], id), redis.call('ZSCORE', KEYS[4], id)
local parked = redis.call('ZSCORE', KEYS[5], id)
local waits = scheduled or retrying or parked
local completed = redis.call('ZSCORE', KEYS[7], id)
if not waits and (redis.call('ZSCORE', KEYS[6], id) or completed and number(completed) > now) then return 0 end
if waits and ARGV[9] ~= '1' then return 3 end
local reported = redis.call('HEXISTS', KEYS[10], id)
local version = math.max(now, (tonumber(redis.call('HGET', KEYS[2], 'version') or 0) or 0) + 1)
-- The lock of a task that may still be pending or active ends with it; until then it counts as free.
--#include locks LOCKS=KEYS[11]
local own = waits and held({ARGV[10], '#' .. id}, {id}) or {}
redis.call('HLEN', KEYS[8])
redis.call('HLEN', KEYS[9])
redis.call('HLEN', KEYS[12])
local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[8])
over[#over + 1] = id

redis.call('ZREM', KEYS[1], unpack(over))
if #own > 0 then redis.call('HDEL', KEYS[11], unpack(own)) end
if not waits then
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), id)
  redis.call('HSET', KEYS[2], 'version', string.format('%.0f', version))
  redis.call('PUBLISH', ARGV[6], 'cancel ' .. id)
  return 1
end
redis.call('ZREM', KEYS[3], id)
redis.call('ZREM', KEYS[4], id)
redis.call('ZREM', KEYS[5], id)
redis.call('HDEL', KEYS[8], id)
redis.call('HDEL', KEYS[9], id)
if keep > 0 then
  redis.call('ZADD', KEYS[7], now + keep, id)
  redis.call('HSET', KEYS[10], id, ARGV[4])
elseif reported == 1 and not completed then
  redis.call('HDEL', KEYS[10], id)
end
--#include count STATS=KEYS[12] LIFE=ARGV[7]
count('canceled', 1)
redis.call('PUBLISH', ARGV[5], 'ended')
return 2
