-- shelve: end claims by filing their tasks in a sorted set: scheduled, retry, parked or archived.
-- KEYS  1 processing hash   2 claims hash   3 tasks hash   4 the sorted set   5 info hash   6 counters of the day
--       7 wake list   8 locks hash   9 locked set   10 revoked set
-- ARGV  1 life of the counters, s   2 most tasks in the set, 0 for any number
--       3 1 to wake a mover when the first due time changes
--       4 1 to free the ids and locks of the tasks, 0 to extend them by the time that the tasks wait
--       5 channel of the queue's workers to tell them of the tasks, else ''
--       6 number c of counters   7... c names   then the number b of finished batches and b batch numbers
--       then for each task, at most 200: token, id, ms until due or expiry, message or '' to file it as it was claimed,
--       info, what to tell the workers or the channel on which to publish its end or ''
-- Returns for each task 1 if the claim stood, 0 if it did not, 2 if the claim remains because the task was canceled
--       (nothing is written for it then).
-- O(n log m). Works on a full Redis: its first write is an HDEL. An id that is taken becomes id#2, id#3 ...
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local counters = tonumber(ARGV[6])
local batches = tonumber(ARGV[7 + counters])
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[5])
if counters > 0 or tonumber(ARGV[2]) > 0 then redis.call('HLEN', KEYS[6]) end
local woken = ARGV[3] ~= '1' or redis.call('LLEN', KEYS[7]) > 0
local locks = redis.call('HLEN', KEYS[8])
if locks > 0 then redis.call('ZCARD', KEYS[9]) end
local first = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
local canceled = {}
if redis.call('EXISTS', KEYS[10]) == 1 then
  for i = 8 + counters + batches, #ARGV, 6 do
    canceled[ARGV[i]] = redis.call('ZSCORE', KEYS[10], ARGV[i + 1]) and redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1
  end
end
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
local messages, wanted, taken = {}, {}, {}
for i = 8 + counters + batches, #ARGV, 6 do
  messages[ARGV[i]] = ARGV[i + 3] == '' and redis.call('HGET', KEYS[1], ARGV[i])
  wanted[#wanted + 1] = ARGV[i + 1]
end
local others = #wanted > 0 and redis.call('HMGET', KEYS[3], unpack(wanted)) or {}
for i = 1, #wanted do taken[wanted[i]] = others[i] end
-- The first of id, id#2 ... that is not taken.
local function name(id, token)
  if not taken[id] then return id end
  for copy = 2, 10 do
    local other = id .. '#' .. copy
    if not taken[other] and redis.call('HEXISTS', KEYS[3], other) == 0 then return other end
  end
  -- Ten copies: the token and the time make the name unique.
  return id .. '#' .. token .. '-' .. string.format('%.0f', now)
end
local earliest
local answers, done, ids, waits, told, heard = {}, 0, {}, {}, {}, {}
local tasks, dues, infos = {}, {}, {}
for i = 8 + counters + batches, #ARGV, 6 do
  local stood = canceled[ARGV[i]] and 2 or redis.call('HDEL', KEYS[1], ARGV[i])
  answers[#answers + 1] = stood
  if stood == 1 then
    done = done + 1
    local id, due = name(ARGV[i + 1], ARGV[i]), now + tonumber(ARGV[i + 2])
    ids[done], waits[done], taken[id] = ARGV[i + 1], ARGV[i + 2], true
    if not earliest or due < earliest then earliest = due end
    local n = 2 * done
    tasks[n - 1], tasks[n] = id, messages[ARGV[i]] or ARGV[i + 3]
    -- The time as text, because Redis writes a number with 17 digits, which takes longer.
    dues[n - 1], dues[n] = string.format('%.0f', due), id
    infos[n - 1], infos[n] = id, ARGV[i + 4]
    local what = ARGV[i + 5]
    if what ~= '' and not heard[what] then told[#told + 1], heard[what] = what, true end
  end
end
if done > 0 then
  redis.call('HSET', KEYS[3], unpack(tasks))
  redis.call('ZADD', KEYS[4], unpack(dues))
  redis.call('HSET', KEYS[5], unpack(infos))
end
for i = 8 + counters, 7 + counters + batches do redis.call('HDEL', KEYS[2], ARGV[i]) end
if done == 0 then return answers end

for i = 7, 6 + counters do
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
if not woken and (not first[2] or earliest < number(first[2])) then
  redis.call('RPUSH', KEYS[7], '1')
end
-- Free the ids and locks of the tasks, or extend them.
local function settle(ids, waits)
  if locks == 0 then return end
  local marks, names, longer = {}, {}, {}
  local function add(name, i)
    names[#names + 1] = name
    longer[#longer + 1] = waits[i]
  end
  for i = 1, #ids do marks[2 * i - 1], marks[2 * i] = '@' .. ids[i], '#' .. ids[i] end
  local held = redis.call('HMGET', KEYS[8], unpack(marks))
  for i = 1, #ids do
    local lock = held[2 * i - 1]
    if lock then add(marks[2 * i - 1], i) end
    if lock and redis.call('HGET', KEYS[8], lock) == ids[i] then add(lock, i) end
    if held[2 * i] then add(marks[2 * i], i) end
  end
  if #names == 0 then return end
  if ARGV[4] == '1' then
    redis.call('HDEL', KEYS[8], unpack(names))
    redis.call('ZREM', KEYS[9], unpack(names))
    return
  end
  for i = 1, #names do redis.call('ZINCRBY', KEYS[9], longer[i], names[i]) end
end
settle(ids, waits)
for i = 1, #told do
  if ARGV[5] == '' then redis.call('PUBLISH', told[i], 'ended') else redis.call('PUBLISH', ARGV[5], told[i]) end
end
return answers
