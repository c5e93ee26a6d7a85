-- complete: end claims of tasks that were canceled, or that have succeeded and leave something to keep or to free.
-- KEYS  1 processing hash   2 claims hash   3 completed set   4 results hash   5 locks hash
--       6 counters of the day   7 revoked set
-- ARGV  1 life of the counters, s   2 number b of finished batches   3... b batch numbers
--       then for each task, at most 200: token, id, ms to keep a record of it or 0, that record, lock or '',
--       channel on which to publish its end or '', as what it counts: 'processed', 'canceled' or 'revoked' for
--       canceled if it still is revoked
-- Returns for each task 1 if the claim stood, 0 if it did not (nothing is written for it then), 2 if the claim remains
--       because the task is no longer revoked.
-- O(n log m). Works on a full Redis: its first write is an HDEL. It deletes at most 200 expired completed tasks.
--#include clock
local batches = tonumber(ARGV[2])
local answers, tokens, seen = {}, {''}, {}
local kept, values, dues, gone, channels = {}, {}, {}, {}, {}
local fields, owners, revoked = {}, {}, {}
local known = redis.call('EXISTS', KEYS[3], KEYS[4]) > 0
local processed, revocations = 0, redis.call('ZCARD', KEYS[7])
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[2])
redis.call('ZCARD', KEYS[3])
redis.call('HLEN', KEYS[4])
--#include locks LOCKS=KEYS[5]
redis.call('HLEN', KEYS[6])
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
for i = 3 + batches, #ARGV, 7 do
  local id, keep = ARGV[i + 1], tonumber(ARGV[i + 2])
  local stands = seen[ARGV[i]] and 0 or redis.call('HEXISTS', KEYS[1], ARGV[i])
  seen[ARGV[i]] = true
  local canceled = stands == 1 and revocations > 0 and redis.call('ZSCORE', KEYS[7], id)
  if stands == 1 and ARGV[i + 6] == 'revoked' and not canceled then stands = 2 end
  answers[#answers + 1] = stands
  if stands == 1 then
    tokens[#tokens + 1] = ARGV[i]
    if canceled then revoked[#revoked + 1] = id end
    if ARGV[i + 6] == 'processed' then processed = processed + 1 end
    if keep > 0 then
      kept[id] = true
      values[#values + 1], values[#values + 2] = id, ARGV[i + 3]
      dues[#dues + 1], dues[#dues + 2] = now + keep, id
    elseif known and not redis.call('ZSCORE', KEYS[3], id) then
      gone[#gone + 1] = id
    end
    if ARGV[i + 4] ~= '' then
      owners[#owners + 1] = id
      fields[#fields + 1], fields[#fields + 2] = ARGV[i + 4], '#' .. id
    end
    if ARGV[i + 5] ~= '' then channels[#channels + 1] = ARGV[i + 5] end
  end
end
local own = held(fields, owners)
local old = {}
if known and #dues > 0 then
  local over = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 200)
  for i = 1, #over do
    if not kept[over[i]] then old[#old + 1] = over[i] end
  end
end

redis.call('HDEL', KEYS[1], unpack(tokens))
for i = 3, 2 + batches do redis.call('HDEL', KEYS[2], ARGV[i]) end
if #tokens == 1 then return answers end
if #dues > 0 then
  redis.call('ZADD', KEYS[3], unpack(dues))
  redis.call('HSET', KEYS[4], unpack(values))
end
-- Progress reports of tasks that leave no result.
for i = 1, #gone do
  if not kept[gone[i]] then redis.call('HDEL', KEYS[4], gone[i]) end
end
if #old > 0 then
  redis.call('ZREM', KEYS[3], unpack(old))
  redis.call('HDEL', KEYS[4], unpack(old))
end
if #own > 0 then redis.call('HDEL', KEYS[5], unpack(own)) end
-- These cancellations must not hit later tasks of the same ids.
if #revoked > 0 then redis.call('ZREM', KEYS[7], unpack(revoked)) end
--#include count STATS=KEYS[6] LIFE=ARGV[1]
count('processed', processed)
count('canceled', #tokens - 1 - processed)
for i = 1, #channels do redis.call('PUBLISH', channels[i], 'ended') end
return answers
