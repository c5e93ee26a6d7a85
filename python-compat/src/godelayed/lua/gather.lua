-- gather: add calls to a group, which becomes one combined call when it is due.
-- KEYS  1 group list   2 groups set   3 gathered hash   4 wake list
-- ARGV  1 group   2 ms that it waits for another call   3 most ms that its first call waits, 0 for any time
--       4 most calls   5 bytes of arguments in these messages   6 values in these   7 most bytes in a group
--       8 most values in a group   9... messages, in order, at most 1,000
-- Returns {calls in the group, ms until it is due}.
-- O(n + log m). A full Redis refuses it as a whole. The latest call sets how long the group waits; a full group is due
--       at once.
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count, state = redis.call('LLEN', KEYS[1]), redis.call('HGET', KEYS[3], ARGV[1])
local score = redis.call('ZSCORE', KEYS[2], ARGV[1])
local earliest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local woken = redis.call('LLEN', KEYS[4])

local first, bytes, values, full = now, 0, 0, false
if state and count > 0 then
  local since, size, b, v = string.match(state, '^(%d+) %d+ %d+ (%d+) (%d+) (%d+)$')
  if since then
    first, bytes, values = math.min(now, tonumber(since)), tonumber(b), tonumber(v)
    full = count >= tonumber(size) or bytes >= tonumber(ARGV[7]) or values >= tonumber(ARGV[8])
  end
end
local messages = {}
for i = 9, #ARGV do messages[i - 8] = ARGV[i] end
count, bytes, values = count + #messages, bytes + tonumber(ARGV[5]), values + tonumber(ARGV[6])
local quiet = now + tonumber(ARGV[2])
local due = quiet
if tonumber(ARGV[3]) > 0 then due = math.min(due, first + tonumber(ARGV[3])) end
if full and score then
  due = number(score) -- it was due already, and a worker may be combining its calls
elseif count >= tonumber(ARGV[4]) or bytes >= tonumber(ARGV[7]) or values >= tonumber(ARGV[8]) then
  due = now
end

redis.call('RPUSH', KEYS[1], unpack(messages))
local state = string.format('%.0f %.0f ', first, quiet) .. ARGV[3] .. ' ' .. ARGV[4]
redis.call('HSET', KEYS[3], ARGV[1], state .. string.format(' %.0f %.0f', bytes, values))
redis.call('ZADD', KEYS[2], due, ARGV[1])
if (not earliest[2] or due < number(earliest[2])) and woken == 0 then redis.call('RPUSH', KEYS[4], '1') end
return {count, math.max(0, due - now)}
