-- shelve: end claims by filing their tasks in a sorted set: scheduled, retry, parked or archived.
-- KEYS  1 processing hash   2 claims hash   3 tasks hash   4 the sorted set   5 info hash   6 counters of the day
--       7 wake list   8 locks hash   9 revoked set   10 pending list   11 notify list
-- ARGV  1 life of the counters, s   2 most tasks in the set, 0 for any number
--       3 1 to wake a mover when the first due time changes, and to make tasks pending that wait 0 ms
--       4 1 to free the ids and locks of the tasks, 0 to extend them by the time that the tasks wait
--       5 channel of the queue's workers to tell them of the tasks, else ''
--       6 number c of counters   7... c names   then the number b of finished batches and b batch numbers
--       then for each task, at most 200: token, id, ms until due or expiry, message or '' to file it as it was claimed,
--       info, what to tell the workers or the channel on which to publish its end or '', lock or ''
-- Returns for each task 1 if the claim stood, 0 if it did not, 2 if the claim remains because the task was canceled
--       (nothing is written for it then).
-- O(n log m). Works on a full Redis: its first write is an HDEL. An id that is taken becomes id#2, id#3 ...
--#include number
--#include clock
local counters = tonumber(ARGV[6])
local batches = tonumber(ARGV[7 + counters])
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[5])
if counters > 0 or tonumber(ARGV[2]) > 0 then redis.call('HLEN', KEYS[6]) end
local moved = ARGV[3] == '1'
if moved then
  redis.call('LLEN', KEYS[10])
  redis.call('LLEN', KEYS[11])
end
local woken = not moved or redis.call('LLEN', KEYS[7]) > 0
--#include locks LOCKS=KEYS[8]
local first = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
local tokens, wanted, n = {}, {}, 0
for i = 8 + counters + batches, #ARGV, 7 do
  n = n + 1
  tokens[n], wanted[n] = ARGV[i], ARGV[i + 1]
end
local messages = n > 0 and redis.call('HMGET', KEYS[1], unpack(tokens)) or {}
local others = n > 0 and redis.call('HMGET', KEYS[3], unpack(wanted)) or {}
local revoked = n > 0 and redis.call('EXISTS', KEYS[9]) == 1 and redis.call('ZMSCORE', KEYS[9], unpack(wanted))
--#include copy TASKS=KEYS[3]
local answers, seen = {}, {}
for k = 1, n do
  if others[k] then taken[wanted[k]] = true end
  answers[k] = 0
  if messages[k] and not seen[tokens[k]] then answers[k] = revoked and revoked[k] and 2 or 1 end
  seen[tokens[k]] = true
end
local earliest
local done, filed, told, heard = 0, 0, {}, {}
local fields, owners, waits = {}, {}, {}
local ending, pending, ones, tasks, dues, infos = {}, {}, {}, {}, {}, {}
-- Times as text, because Redis writes a number with 17 digits, which takes longer. Many tasks wait as long as others.
local times = {}
for k = 1, n do
  if answers[k] == 1 then
    local i = 1 + counters + batches + 7 * k
    local wait, message, what, lock = ARGV[i + 2], ARGV[i + 3], ARGV[i + 5], ARGV[i + 6]
    if message == '' then message = messages[k] end
    done = done + 1
    ending[done] = tokens[k]
    if what ~= '' and not heard[what] then told[#told + 1], heard[what] = what, true end
    if moved and wait == '0' then
      pending[#pending + 1], ones[#ones + 1] = message, '1'
    else
      local id, score = wanted[k], times[wait]
      if taken[id] then id = copy(id, tokens[k]) end
      if not score then
        local due = now + tonumber(wait)
        score = string.format('%.0f', due)
        times[wait] = score
        earliest = math.min(earliest or due, due)
      end
      taken[id] = true
      if lock ~= '' then
        owners[#owners + 1] = wanted[k]
        waits[#owners] = tonumber(wait)
        fields[#fields + 1], fields[#fields + 2] = lock, '#' .. wanted[k]
      end
      filed = filed + 2
      tasks[filed - 1], tasks[filed] = id, message
      dues[filed - 1], dues[filed] = score, id
      infos[filed - 1], infos[filed] = id, ARGV[i + 4]
    end
  end
end
if done > 0 then redis.call('HDEL', KEYS[1], unpack(ending)) end
if #pending > 0 then
  redis.call('RPUSH', KEYS[10], unpack(pending))
  redis.call('RPUSH', KEYS[11], unpack(ones))
end
if filed > 0 then
  redis.call('HSET', KEYS[3], unpack(tasks))
  redis.call('ZADD', KEYS[4], unpack(dues))
  redis.call('HSET', KEYS[5], unpack(infos))
end
if batches > 0 then redis.call('HDEL', KEYS[2], unpack(ARGV, 8 + counters, 7 + counters + batches)) end
if done == 0 then return answers end

--#include count STATS=KEYS[6] LIFE=ARGV[1]
for i = 7, 6 + counters do count(ARGV[i], done) end
if tonumber(ARGV[2]) > 0 then
  --#include trim SORTED=KEYS[4] TASKS=KEYS[3] INFO=KEYS[5] MOST=tonumber(ARGV[2])
end
if not woken and earliest and (not first[2] or earliest < number(first[2])) then
  redis.call('RPUSH', KEYS[7], '1')
end
local own, later = held(fields, owners, waits)
if #own > 0 then
  if ARGV[4] == '1' then redis.call('HDEL', KEYS[8], unpack(own)) else redis.call('HSET', KEYS[8], unpack(later)) end
end
for i = 1, #told do
  if ARGV[5] == '' then redis.call('PUBLISH', told[i], 'ended') else redis.call('PUBLISH', ARGV[5], told[i]) end
end
return answers
