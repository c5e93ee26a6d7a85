-- join: end claims of tasks that were scheduled for a group, by adding them to it.
-- KEYS  1 processing hash   2 claims hash   3 group list   4 groups set   5 gathered hash   6 wake list
-- ARGV  1 group   2 ms that it waits for another call   3 most ms that its first call waits, 0 for any time
--       4 most calls   5 most bytes in a group   6 most values in a group   7 number b of finished batches
--       8... b batch numbers
--       then for each claim, at most 500: token, bytes of arguments, values in these
-- Returns for each claim 1 if it stood, 0 if it did not (nothing is written for it then).
-- O(n + log m). Works on a full Redis: its first write is an HDEL. As in gather, the latest call sets how
--       long the group waits.
--#include number
--#include clock
local batches = tonumber(ARGV[7])
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
local count, state = redis.call('LLEN', KEYS[3]), redis.call('HGET', KEYS[5], ARGV[1])
local score = redis.call('ZSCORE', KEYS[4], ARGV[1])
local earliest = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
local woken = redis.call('LLEN', KEYS[6])
-- Fail on a key of another type before anything is removed.
redis.call('HLEN', KEYS[2])
local answers, tokens, messages, seen, more, most = {}, {}, {}, {}, 0, 0
for i = 8 + batches, #ARGV, 3 do
  local message = not seen[ARGV[i]] and redis.call('HGET', KEYS[1], ARGV[i])
  seen[ARGV[i]] = true
  answers[#answers + 1] = message and 1 or 0
  if message then
    tokens[#tokens + 1], messages[#messages + 1] = ARGV[i], message
    more, most = more + tonumber(ARGV[i + 1]), most + tonumber(ARGV[i + 2])
  end
end
if #tokens > 0 then redis.call('HDEL', KEYS[1], unpack(tokens)) end
for i = 8, 7 + batches do redis.call('HDEL', KEYS[2], ARGV[i]) end
if #tokens == 0 then return answers end

local first, bytes, values, full = now, 0, 0, false
if state and count > 0 then
  local since, size, b, v = string.match(state, '^(%d+) %d+ %d+ (%d+) (%d+) (%d+)$')
  if since then
    first, bytes, values = math.min(now, tonumber(since)), tonumber(b), tonumber(v)
    full = count >= tonumber(size) or bytes >= tonumber(ARGV[5]) or values >= tonumber(ARGV[6])
  end
end
count, bytes, values = count + #messages, bytes + more, values + most
local quiet = now + tonumber(ARGV[2])
local due = quiet
if tonumber(ARGV[3]) > 0 then due = math.min(due, first + tonumber(ARGV[3])) end
if full and score then
  due = number(score) -- it was due already, and a worker may be combining its calls
elseif count >= tonumber(ARGV[4]) or bytes >= tonumber(ARGV[5]) or values >= tonumber(ARGV[6]) then
  due = now
end
redis.call('RPUSH', KEYS[3], unpack(messages))
local state = string.format('%.0f %.0f ', first, quiet) .. ARGV[3] .. ' ' .. ARGV[4]
redis.call('HSET', KEYS[5], ARGV[1], state .. string.format(' %.0f %.0f', bytes, values))
redis.call('ZADD', KEYS[4], due, ARGV[1])
if (not earliest[2] or due < number(earliest[2])) and woken == 0 then redis.call('RPUSH', KEYS[6], '1') end
return answers
