-- claim: move pending tasks into the worker's processing hash, and end claims that are done.
-- KEYS  1 some pending list   2 its notify list   3 heartbeat   4 processing hash   5 claims hash
--       6 counters of the day
--       7 control hash
-- ARGV  1 batch number   2 most tasks, at most 1,000   3 notifications the caller holds, 0 or 1
--       4 most bytes of a message, and of all unless the first is larger   5 1 when legacy workers share the queue
--       6 1 to mend the notify list of such a queue   7 life of the counters, s   8 value of the heartbeat, as in ack
--       9 number b of finished batches   10... b batch numbers   then tokens to end, at most 500
-- Returns {1, tasks left, answers, message...}; {2, tasks left, answers, version of the control hash, message...} if
--       there is one; {0, 0, answers} without heartbeat; {-1, 0, answers} when the batch number was used before;
--       {-2, 0, answers} when the queue is paused. answers are those of ack. A message that is too large is claimed
--       too, but only its size is returned. Gaps that withdraw has left are dropped.
-- O(n). Works on a full Redis: its first write is an LTRIM or HDEL.
local most, held = tonumber(ARGV[2]), tonumber(ARGV[3])
local legacy = ARGV[5] == '1'
-- Measure lists first, and file new claims before ending old ones: while a slot moves, a command on a key that was
-- emptied fails.
local left, notified = redis.call('LLEN', KEYS[1]), redis.call('LLEN', KEYS[2])
local pulse = redis.call('GET', KEYS[3])
local control = redis.call('HMGET', KEYS[7], 'paused', 'version', 'gaps')
local used = redis.call('HEXISTS', KEYS[4], ARGV[1] .. '-1') == 1
local status, reply = 1, {1, 0, 0}
if not pulse then
  status, most = 0, 0
elseif control[1] then
  status, most = -2, 0
elseif used then
  status, most = -1, 0
elseif control[2] then
  status, reply[4] = 2, control[2]
end
reply[1] = status
most = math.min(most, left)
-- A legacy worker that wakes must find a task: leave as many tasks as there are notifications.
if legacy then most = math.min(most, held + notified) end
local first = 10 + tonumber(ARGV[9])
-- Keys of another type are an error before anything is taken.
if most > 0 or first <= #ARGV then redis.call('HLEN', KEYS[5]) end
if first <= #ARGV then redis.call('HLEN', KEYS[6]) end

-- Read one message, and then in steps sized by those seen so far, so that little is read in vain. Large messages often
-- follow each other: if the last one of a step or one in its middle is so large that the step would be too much, end
-- before it.
local limit = tonumber(ARGV[4])
local at, n, gaps, bytes, step = #reply, 0, 0, 0, 1
-- Tokens are put together from digits: Lua is slow at writing numbers.
local gap = control[3] and '-' -- what withdraw leaves in the place of a task
local fields, digits, tens, units = {}, {[0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}, ARGV[1] .. '-', 1
for _ = 1, gap and most + 100 or most do
  step = math.min(step, most - n + gaps) -- gaps often follow each other, too
  for i = step, 2, -128 do
    if step * #(redis.call('LINDEX', KEYS[1], n + gaps + i - 1) or '') > 2 * limit then
      step = n == 0 and 1 or 0
      break
    end
  end
  if step == 0 then break end
  local some = redis.call('LRANGE', KEYS[1], n + gaps, n + gaps + step - 1)
  for i = 1, #some do
    if n == most then break end
    local size = #some[i]
    bytes = bytes + size
    if n > 0 and bytes > limit then break end
    if some[i] == gap then
      gaps = gaps + 1
    else
      n = n + 1
      reply[at + n] = size > limit and size or some[i]
      fields[2 * n - 1], fields[2 * n] = tens .. digits[units], some[i]
      units = units + 1
      if units == 10 then tens, units = ARGV[1] .. '-' .. (n + 1) / 10, 0 end
    end
  end
  if bytes > limit or #some < step or n == most then break end
  step = math.min(256, 16 * step, math.floor((limit - bytes) * (n + gaps) / math.max(bytes, 1)) + 1)
end

if n + gaps > 0 then redis.call('LTRIM', KEYS[1], n + gaps, -1) end
if n > 0 then
  -- Redis keeps up to 512 short fields in one block and walks through it for each of them: 500 small messages would
  -- take three times as long. One field of more than 64 bytes makes it a table for good.
  local long = n >= 64 and string.format('%65s', '')
  if long then redis.call('HSET', KEYS[4], long, '') end
  redis.call('HSET', KEYS[4], unpack(fields))
  if long then redis.call('HDEL', KEYS[4], long) end
  --#include clock
  redis.call('HSET', KEYS[5], ARGV[1], now)
end
left = left - n - gaps
if gaps > 0 and redis.call('HINCRBY', KEYS[7], 'gaps', -gaps) <= 0 then redis.call('HDEL', KEYS[7], 'gaps') end
reply[2] = left
local mend = not legacy or ARGV[6] == '1'
if left == 0 and mend then
  redis.call('LTRIM', KEYS[2], 1, 0)
else
  local spend = math.min(math.max(0, n + gaps - held), notified)
  if left > 0 and (n + gaps == 0 and held == 1 or mend and notified == spend) then
    -- A notification to remove and one to add cancel out.
    if spend == 0 then
      redis.call('LTRIM', KEYS[2], 0, -1)
      redis.call('RPUSH', KEYS[2], '1')
    end
    spend = spend - 1
  end
  if spend > 0 then redis.call('LPOP', KEYS[2], spend) end
end

if first > #ARGV then return reply end
--#include ended CLAIMS=KEYS[4] FIRST=first STAND=pulse==ARGV[8]
reply[3] = answers
if first > 10 then redis.call('HDEL', KEYS[5], unpack(ARGV, 10, first - 1)) end
--#include count STATS=KEYS[6] LIFE=ARGV[7]
count('processed', done)
return reply
