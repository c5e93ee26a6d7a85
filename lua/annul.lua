-- annul: end claims of tasks that were canceled.
-- KEYS  1 processing hash   2 claims hash   3 revoked set   4 completed set   5 results hash   6 locks hash
--       7 counters of the day
-- ARGV  1 life of the counters, s   2 number b of finished batches   3... b batch numbers
--       then for each task, at most 200: token, id, ms to keep a record of the cancellation or 0, that record, lock or
--       '', channel on which to publish its end or '', 1 if the task is canceled even if it is not revoked
-- Returns for each task 1 if the claim stood, 0 if it did not, 2 if the claim remains because the task is no longer
--       revoked.
-- O(n log m). Works on a full Redis: its first write is an HDEL.
--#include clock
local batches = tonumber(ARGV[2])
local answers, tokens, ids, seen = {}, {''}, {''}, {}
local values, dues, gone, channels = {}, {}, {}, {}
local fields, owners = {}, {}
local known = redis.call('EXISTS', KEYS[4], KEYS[5]) > 0
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
for i = 3 + batches, #ARGV, 7 do
  local id, keep = ARGV[i + 1], tonumber(ARGV[i + 2])
  local stands = seen[ARGV[i]] and 0 or redis.call('HEXISTS', KEYS[1], ARGV[i])
  seen[ARGV[i]] = true
  if stands == 1 and not redis.call('ZSCORE', KEYS[3], id) and ARGV[i + 6] ~= '1' then stands = 2 end
  answers[#answers + 1] = stands
  if stands == 1 then
    tokens[#tokens + 1] = ARGV[i]
    ids[#ids + 1] = id
    if keep > 0 then
      values[#values + 1], values[#values + 2] = id, ARGV[i + 3]
      dues[#dues + 1], dues[#dues + 2] = now + keep, id
    elseif known and not redis.call('ZSCORE', KEYS[4], id) then
      gone[#gone + 1] = id
    end
    if ARGV[i + 4] ~= '' then
      owners[#owners + 1] = id
      fields[#fields + 1], fields[#fields + 2] = ARGV[i + 4], '#' .. id
    end
    if ARGV[i + 5] ~= '' then channels[#channels + 1] = ARGV[i + 5] end
  end
end
local done = #tokens - 1
--#include locks LOCKS=KEYS[6]
local own = held(fields, owners)
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[2])
redis.call('ZCARD', KEYS[4])
redis.call('HLEN', KEYS[5])
redis.call('HLEN', KEYS[7])

redis.call('HDEL', KEYS[1], unpack(tokens))
for i = 3, 2 + batches do redis.call('HDEL', KEYS[2], ARGV[i]) end
if done == 0 then return answers end
redis.call('ZREM', KEYS[3], unpack(ids))
if #dues > 0 then
  redis.call('ZADD', KEYS[4], unpack(dues))
  redis.call('HSET', KEYS[5], unpack(values))
end
if #gone > 0 then redis.call('HDEL', KEYS[5], unpack(gone)) end
if #own > 0 then redis.call('HDEL', KEYS[6], unpack(own)) end
--#include count STATS=KEYS[7] LIFE=ARGV[1]
count('canceled', done)
for i = 1, #channels do redis.call('PUBLISH', channels[i], 'ended') end
return answers
