-- move: make due tasks pending.
-- KEYS  1 scheduled or retry set   2 tasks hash   3 info hash   4 pending list   5 notify list
-- ARGV  1 most tasks, at most 1,000   2 most bytes   3 most bytes of one task
-- Returns {tasks moved, ms until the next is due (0 overdue, -1 none), id, size ...}: the tasks listed are due, but
--       stay because they are too large.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local moved = 0
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[3])
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[5])
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
local ids, bytes, reply = {}, 0, {0, -1}
for i = 1, #found do
  local size = redis.call('HSTRLEN', KEYS[2], found[i])
  if size > tonumber(ARGV[3]) then
    reply[#reply + 1], reply[#reply + 2] = found[i], size
  else
    bytes = bytes + size
    if #ids > 0 and bytes > tonumber(ARGV[2]) then break end
    ids[#ids + 1] = found[i]
  end
end
if #ids > 0 then
  found = redis.call('HMGET', KEYS[2], unpack(ids))
  local messages, ones = {}, {}
  for i = 1, #ids do
    if found[i] then
      moved = moved + 1
      messages[moved] = found[i]
      ones[moved] = '1'
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
return reply
