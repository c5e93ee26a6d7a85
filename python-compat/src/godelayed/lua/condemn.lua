-- condemn: archive tasks that were parked for too long, or are due and too large to be made pending.
-- KEYS  1 scheduled, retry or parked set   2 archived set   3 info hash   4 counters of the day   5 locks hash
-- ARGV  1 life of the counters, s   2 ms that an archived task is kept
--       then for each task, at most 200: id, info, lock or ''
-- Returns the number of tasks archived.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Fail on keys of another type before anything is removed.
redis.call('ZCARD', KEYS[2])
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[4])
local locks = redis.call('HLEN', KEYS[5])
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
if archived > 0 and redis.call('HINCRBY', KEYS[4], 'archived', archived) == archived then
  redis.call('EXPIRE', KEYS[4], ARGV[1])
end
-- Free the ids and locks of tasks that have ended; see README.md.
local function free(fields, ids)
  if #ids == 0 or locks == 0 then return end
  local values, own = redis.call('HMGET', KEYS[5], unpack(fields)), {}
  for i = 1, #fields do
    if values[i] and string.match(values[i], '^%d+ (.*)$') == ids[math.ceil(i / 2)] then own[#own + 1] = fields[i] end
  end
  if #own > 0 then redis.call('HDEL', KEYS[5], unpack(own)) end
end
free(fields, ids)
return archived
