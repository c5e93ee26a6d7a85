-- condemn: archive tasks that were parked for too long, or are due and too large to be made pending.
-- KEYS  1 scheduled, retry or parked set   2 archived set   3 info hash   4 counters of the day   5 locks hash
-- ARGV  1 life of the counters, s   2 ms that an archived task is kept
--       then for each task, at most 200: id, info, lock or ''
-- Returns the number of tasks archived.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
--#include number
--#include clock
-- Fail on keys of another type before anything is removed.
redis.call('ZCARD', KEYS[2])
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[4])
--#include locks LOCKS=KEYS[5]
local expiry = now + tonumber(ARGV[2])
local archived, fields, ids = 0, {}, {}
for i = 3, #ARGV, 3 do
  local over = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if over and number(over) <= now then
    redis.call('ZREM', KEYS[1], ARGV[i])
    archived = archived + 1
    if ARGV[i + 2] ~= '' then
      ids[#ids + 1] = ARGV[i]
      fields[#fields + 1], fields[#fields + 2] = ARGV[i + 2], '#' .. ARGV[i]
    end
    redis.call('ZADD', KEYS[2], expiry, ARGV[i])
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  end
end
--#include count STATS=KEYS[4] LIFE=ARGV[1]
count('archived', archived)
local own = held(fields, ids)
if #own > 0 then redis.call('HDEL', KEYS[5], unpack(own)) end
return archived
