-- move: make due tasks pending.
-- KEYS  1 scheduled or retry set   2 tasks hash   3 info hash   4 pending list   5 notify list
-- ARGV  1 most tasks, at most 1,000   2 most bytes
-- Returns {tasks moved, ms until the next is due (0 overdue, -1 none)}.
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
-- Keys of another type are an error before anything is removed.
redis.call('HLEN', KEYS[3])
redis.call('LLEN', KEYS[4])
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
local bytes = 0
for i = 1, #ids do
  bytes = bytes + redis.call('HSTRLEN', KEYS[2], ids[i])
  if i > 1 and bytes > tonumber(ARGV[2]) then
    for j = #ids, i, -1 do ids[j] = nil end
    break
  end
end
if #ids > 0 then
  local found = redis.call('HMGET', KEYS[2], unpack(ids))
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
local wait = -1
if first[2] then wait = math.ceil(math.max(0, number(first[2]) - now)) end
return {moved, wait}
