-- tick: enqueue the ticks of a periodic entry and set the next one, if the entry is still as it was read.
-- KEYS  1 pending list   2 notify list   3 periodic hash   4 ticks set   5 history list   6 locks hash   7 revoked set
-- ARGV  1 entry   2 its value as it was read   3 value to write when the lock is free
--       4 value to write when it is held   5 when it ticks next, if free, ms since 1970 (empty: never)
--       6 the same, if held   7 time that must have come, ms since 1970
--       8 lock (empty: none)   9 life of the lock, ms   10 most lines of history
--       then for each tick, at most 110: its time in ms, id, message, outcome if free, outcome if held
-- Returns {1, time in ms, ''}, or {2, time, id of the task that holds the lock}. It writes nothing and returns
--       {0, time, ''} when the entry has changed, {-1, time, ''} before its time, and {2, time, id} when the lock is
--       held and the value stays the same.
-- O(n + log m). A full Redis refuses it as a whole. The outcome 'enqueued' enqueues the message; an empty outcome
--       writes no line of history.
--#include clock
-- Fail on keys of another type before anything is written; read nothing afterwards.
redis.call('LLEN', KEYS[1])
redis.call('LLEN', KEYS[2])
redis.call('ZCARD', KEYS[4])
redis.call('LLEN', KEYS[5])
local value, holder = ARGV[3], false
if ARGV[8] ~= '' then
  local expiry, id = string.match(redis.call('HGET', KEYS[6], ARGV[8]) or '', '^(%d+) (.*)$')
  holder = expiry and tonumber(expiry) > now and not redis.call('ZSCORE', KEYS[7], id) and id
end
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return {0, now, ''} end
if now < tonumber(ARGV[7]) then return {-1, now, ''} end
if holder then
  value = ARGV[4]
  if value == ARGV[2] then return {2, now, holder} end
end

redis.call('HSET', KEYS[3], ARGV[1], value)
local stamp = ' ' .. string.format('%.0f', now) .. ' '
for i = 11, #ARGV, 5 do
  local outcome = ARGV[i + 3]
  if holder then outcome = ARGV[i + 4] end
  if outcome == 'enqueued' then
    redis.call('RPUSH', KEYS[2], '1')
    redis.call('RPUSH', KEYS[1], ARGV[i + 2])
    if ARGV[8] ~= '' then
      redis.call('HSET', KEYS[6], ARGV[8], string.format('%.0f', now + tonumber(ARGV[9])) .. ' ' .. ARGV[i + 1])
    end
  end
  if outcome ~= '' then redis.call('LPUSH', KEYS[5], ARGV[i] .. stamp .. outcome .. ' ' .. ARGV[i + 1]) end
end
redis.call('LTRIM', KEYS[5], 0, ARGV[10] - 1)
local due = ARGV[5]
if holder then due = ARGV[6] end
if due == '' then
  redis.call('ZREM', KEYS[4], ARGV[1])
else
  redis.call('ZADD', KEYS[4], due, ARGV[1])
end
if holder then return {2, now, holder} end
return {1, now, ''}
