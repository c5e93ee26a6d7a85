-- fire: make the combined call of a group pending, if the group still begins with the calls that it combines.
-- KEYS  1 group list   2 groups set   3 gathered hash   4 pending list   5 notify list   6 control hash
-- ARGV  1 group   2 number of combined calls   3 the first of them, '' for one call that is too large to be read
--       4 the last   5 their bytes of arguments   6 their values
--       7 when the next call was made, ms, 0 if unknown   8 most bytes in a group   9 most values in a group
--       10 version of the control hash when they were read, 0 if there was none
--       11... messages to make pending, in order, at most 1,000:
--       none if the one call is too large, which becomes pending as it is
-- Returns {1 if it was done, else 0, ms until the group is due again (0 overdue, -1 gone)}, or {2, 0} if some of the
--       calls may have been canceled since. With 0 calls it only forgets an empty group.
-- O(n + log m). Works on a full Redis: its first write is an LTRIM.
--#include number
--#include clock
local n, count = tonumber(ARGV[2]), redis.call('LLEN', KEYS[1])
local score, state = redis.call('ZSCORE', KEYS[2], ARGV[1]), redis.call('HGET', KEYS[3], ARGV[1])
-- Fail on keys of another type before anything is removed.
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[5])
local same = n == 0 and count == 0
local large = n == 1 and ARGV[3] == '' and redis.call('LINDEX', KEYS[1], 0)
if large then
  same = #large == tonumber(ARGV[5])
elseif n > 0 and count >= n then
  same = redis.call('LINDEX', KEYS[1], 0) == ARGV[3] and redis.call('LINDEX', KEYS[1], n - 1) == ARGV[4]
end
if not same then
  if score then return {0, math.ceil(math.max(0, number(score) - now))} end
  return {0, -1}
end

if (tonumber(redis.call('HGET', KEYS[6], 'version') or 0) or 0) ~= tonumber(ARGV[10]) then return {2, 0} end

local messages, ones = {}, {}
for i = 11, #ARGV do messages[i - 10], ones[i - 10] = ARGV[i], '1' end
if large then messages[1], ones[1] = large, '1' end
local due = now
local since, quiet, delay, size, bytes, values = string.match(state or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
if since then
  bytes, values = math.max(0, tonumber(bytes) - tonumber(ARGV[5])), math.max(0, tonumber(values) - tonumber(ARGV[6]))
  -- ARGV[7] comes from a producer's clock.
  since = tonumber(since)
  if ARGV[7] ~= '0' then since = math.max(since, math.min(tonumber(ARGV[7]), now)) end
  if count - n < tonumber(size) and bytes < tonumber(ARGV[8]) and values < tonumber(ARGV[9]) then
    due = tonumber(quiet)
    if tonumber(delay) > 0 then due = math.min(due, since + tonumber(delay)) end
  end
  state = string.format('%.0f ', since) .. quiet .. ' ' .. delay .. ' ' .. size
  state = state .. string.format(' %.0f %.0f', bytes, values)
end

redis.call('LTRIM', KEYS[1], n, -1)
if count > n then
  redis.call('ZADD', KEYS[2], due, ARGV[1])
  if since then redis.call('HSET', KEYS[3], ARGV[1], state) end
else
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('HDEL', KEYS[3], ARGV[1])
end
if #messages > 0 then
  redis.call('RPUSH', KEYS[5], unpack(ones))
  redis.call('RPUSH', KEYS[4], unpack(messages))
end
if count > n then return {1, math.ceil(math.max(0, due - now))} end
return {1, -1}
