-- move: make due tasks pending, and count how late that is.
-- KEYS  1 scheduled or retry set   2 tasks hash   3 info hash   4 pending list   5 notify list   6 metrics hash
-- ARGV  1 most tasks, at most 1,000   2 most bytes   3 most bytes of one task   4 life of the metrics hash, s
-- Returns {tasks moved, ms until the next is due (0 overdue, -1 none), id, size ...}: the tasks listed are due, but
--       stay because they are too large.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
--#include number
--#include clock
local moved = 0
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[3])
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[5])
local counted = tonumber(redis.call('HGET', KEYS[6], 'sum') or 0)
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local ids, dues, n, bytes, reply = {}, {}, 0, 0, {0, -1}
local most, largest = tonumber(ARGV[2]), tonumber(ARGV[3])
local score, due
for i = 1, #found, 2 do
  local size = redis.call('HSTRLEN', KEYS[2], found[i])
  if size > largest then
    reply[#reply + 1], reply[#reply + 2] = found[i], size
  else
    bytes = bytes + size
    if n > 0 and bytes > most then break end
    if found[i + 1] ~= score then
      score = found[i + 1]
      due = number(score)
    end
    n = n + 1
    ids[n], dues[n] = found[i], due
  end
end
-- How late each task is, in us, falls into a bucket of internal/metrics. The tasks are in the order of their dues, so
-- those of one bucket follow each other. What is later than 50 days counts as 50 days.
local buckets, tasks, sum, unit, octave, last, us = {}, {}, 0, 1, 0, nil, nil
local function count(due)
  if due == last then
    tasks[#buckets], sum = tasks[#buckets] + 1, sum + us
    return
  end
  last = due
  us = math.floor(math.max(0, math.min((now - due) * 1000 + time[2] % 1000, 2 ^ 42)))
  if us >= 8 * unit or us < 4 * unit then
    unit, octave = 1, 0
    for i = 1, 40 do
      if us >= 8 * unit then unit, octave = unit * 2, octave + 1 end
    end
  end
  local bucket = 4 * octave + math.floor(us / unit)
  if buckets[#buckets] ~= bucket then buckets[#buckets + 1], tasks[#buckets + 1] = bucket, 0 end
  tasks[#buckets] = tasks[#buckets] + 1
  sum = sum + us
end
if n > 0 then
  found = redis.call('HMGET', KEYS[2], unpack(ids))
  local messages, ones = {}, {}
  for i = 1, n do
    if found[i] then
      moved = moved + 1
      messages[moved] = found[i]
      ones[moved] = '1'
      count(dues[i])
    end
  end
  redis.call('ZREM', KEYS[1], unpack(ids))
  redis.call('HDEL', KEYS[2], unpack(ids))
  redis.call('HDEL', KEYS[3], unpack(ids))
  if moved > 0 then
    redis.call('RPUSH', KEYS[4], unpack(messages))
    redis.call('RPUSH', KEYS[5], unpack(ones))
  end
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
reply[1] = moved
if first[2] then reply[2] = math.ceil(math.max(0, number(first[2]) - now)) end
-- Redis counts no further than 9.2e18.
if moved > 0 and counted and counted < 2 ^ 62 then
  for i = 1, #buckets do redis.call('HINCRBY', KEYS[6], buckets[i], tasks[i]) end
  redis.call('HINCRBY', KEYS[6], 'sum', string.format('%.0f', sum))
  redis.call('EXPIRE', KEYS[6], ARGV[4])
end
return reply
