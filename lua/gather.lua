-- gather: add calls to groups, each of which becomes one combined call when it is due.
-- KEYS  for each group: group list, groups set, gathered hash, wake list
-- ARGV  1 most bytes in a group   2 most values in a group
--       then for each call, at most 500: number of its group among KEYS, group, ms that this waits for another call,
--       most ms that its first call waits or 0 for any time, most calls, bytes of arguments, values in these, message
-- Returns the number of calls.
-- O(n + groups * log m). A full Redis refuses it as a whole. The latest call sets how long its group waits; a full
--       group is due at once.
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local names = {}
for i = 3, #ARGV, 8 do names[tonumber(ARGV[i])] = ARGV[i + 1] end

-- Of each group: its calls, when the first one came, bytes, values, most calls if known, and when it is due.
local counts, firsts, bytes, values, sizes, dues = {}, {}, {}, {}, {}, {}
local earliest, woken = {}, 0
for i = 1, #KEYS, 4 do
  local g = (i + 3) / 4
  if i == 1 then
    earliest = redis.call('ZRANGE', KEYS[i + 1], 0, 0, 'WITHSCORES')
    woken = redis.call('LLEN', KEYS[i + 3])
  end
  if names[g] then
    local count, state = redis.call('LLEN', KEYS[i]), redis.call('HGET', KEYS[i + 2], names[g])
    local score = redis.call('ZSCORE', KEYS[i + 1], names[g])
    counts[g], firsts[g], bytes[g], values[g], sizes[g] = count, now, 0, 0, false
    dues[g] = score and number(score)
    if state and count > 0 then
      local since, size, b, v = string.match(state, '^(%d+) %d+ %d+ (%d+) (%d+) (%d+)$')
      if since then
        firsts[g], sizes[g] = math.min(now, tonumber(since)), tonumber(size)
        bytes[g], values[g] = tonumber(b), tonumber(v)
      end
    end
  end
end
local messages, quiets, delays = {}, {}, {}
local most, mostValues = tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 3, #ARGV, 8 do
  local g = tonumber(ARGV[i])
  local delay, size, list = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), messages[g]
  if not list then
    list = {}
    messages[g] = list
  end
  list[#list + 1] = ARGV[i + 7]
  local full = sizes[g] and (counts[g] >= sizes[g] or bytes[g] >= most or values[g] >= mostValues)
  counts[g], sizes[g], delays[g], quiets[g] = counts[g] + 1, size, delay, now + tonumber(ARGV[i + 2])
  bytes[g], values[g] = bytes[g] + tonumber(ARGV[i + 5]), values[g] + tonumber(ARGV[i + 6])
  -- A full group was due already, and a worker may be combining its calls.
  if not (full and dues[g]) then
    dues[g] = quiets[g]
    if delay > 0 then dues[g] = math.min(quiets[g], firsts[g] + delay) end
    if counts[g] >= size or bytes[g] >= most or values[g] >= mostValues then dues[g] = now end
  end
end

local wakes = false
for i = 1, #KEYS, 4 do
  local g = (i + 3) / 4
  if names[g] then
    redis.call('RPUSH', KEYS[i], unpack(messages[g]))
    redis.call('HSET', KEYS[i + 2], names[g], string.format('%.0f %.0f %.0f %.0f %.0f %.0f', firsts[g], quiets[g],
      delays[g], sizes[g], bytes[g], values[g]))
    redis.call('ZADD', KEYS[i + 1], dues[g], names[g])
    wakes = wakes or not earliest[2] or dues[g] < number(earliest[2])
  end
  if wakes and woken == 0 then
    redis.call('RPUSH', KEYS[i + 3], '1')
    woken = 1
  end
end
return (#ARGV - 2) / 8
