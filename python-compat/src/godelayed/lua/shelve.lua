-- shelve: end claims by filing their tasks in a sorted set: retry, parked or archived.
-- KEYS  1 processing hash   2 claims hash   3 tasks hash   4 the sorted set   5 info hash   6 counters of the day   7 wake list
-- ARGV  1 life of the counters, s   2 most tasks in the set, 0 for any number   3 1 to wake a mover when the first due time changes
--       4 number c of counters   5... c names   then the number b of finished batches and b batch numbers
--       then for each task, at most 200: token, id, ms until due or expiry, message, info
-- Returns for each task 1 if the claim stood, 0 if it did not (nothing is written for it then).
-- O(n log m). Works on a full Redis: its first write is an HDEL. An id that is taken becomes id#2, id#3 ...
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local counters = tonumber(ARGV[4])
local batches = tonumber(ARGV[5 + counters])
-- Keys of another type are an error before anything is removed.
redis.call('HLEN', KEYS[3])
local first = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
local earliest
local answers, done = {}, 0
for i = 6 + counters + batches, #ARGV, 5 do
  local stood = redis.call('HDEL', KEYS[1], ARGV[i])
  answers[#answers + 1] = stood
  if stood == 1 then
    done = done + 1
    local id = ARGV[i + 1]
    local filed = redis.call('HSETNX', KEYS[3], id, ARGV[i + 3])
    for copy = 2, 10 do
      if filed == 1 then break end
      id = ARGV[i + 1] .. '#' .. copy
      filed = redis.call('HSETNX', KEYS[3], id, ARGV[i + 3])
    end
    if filed == 0 then
      -- Ten copies: the token and the time make the name unique.
      id = ARGV[i + 1] .. '#' .. ARGV[i] .. '-' .. string.format('%.0f', now)
      redis.call('HSET', KEYS[3], id, ARGV[i + 3])
    end
    local due = now + tonumber(ARGV[i + 2])
    if not earliest or due < earliest then earliest = due end
    redis.call('ZADD', KEYS[4], due, id)
    redis.call('HSET', KEYS[5], id, ARGV[i + 4])
  end
end
for i = 6 + counters, 5 + counters + batches do redis.call('HDEL', KEYS[2], ARGV[i]) end
if done == 0 then return answers end

for i = 5, 4 + counters do
  if redis.call('HINCRBY', KEYS[6], ARGV[i], done) == done then redis.call('EXPIRE', KEYS[6], ARGV[1]) end
end
if tonumber(ARGV[2]) > 0 then
  local excess = redis.call('ZCARD', KEYS[4]) - tonumber(ARGV[2])
  if excess > 0 then
    local old = redis.call('ZRANGE', KEYS[4], 0, math.min(excess, 1000) - 1)
    redis.call('ZREM', KEYS[4], unpack(old))
    redis.call('HDEL', KEYS[3], unpack(old))
    redis.call('HDEL', KEYS[5], unpack(old))
    redis.call('HINCRBY', KEYS[6], 'trimmed', #old)
  end
end
if ARGV[3] == '1' and (not first[2] or earliest < number(first[2])) and redis.call('LLEN', KEYS[7]) == 0 then
  redis.call('RPUSH', KEYS[7], '1')
end
return answers
