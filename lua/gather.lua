-- gather: add calls to groups, each of which becomes one combined call when it is due.
-- KEYS  for each group: group list, groups set, gathered hash, wake list
-- ARGV  1 most bytes in a group   2 most values in a group
--       then for each call, at most 500: number of its group among KEYS, group, ms that this waits for another call,
--       most ms that its first call waits or 0 for any time and most calls as 'ms calls', bytes of arguments,
--       values in these, message
-- Returns the number of calls.
-- O(n + groups * log m). A full Redis refuses it as a whole. The latest call sets how long its group waits; a full
--       group is due at once. All groups are of one queue.
--#include number
--#include clock
-- Numbers as text, each made once, because that takes longer than most commands.
local texts = {}
local function text(n)
  if not texts[n] then texts[n] = string.format('%.0f', n) end
  return texts[n]
end
-- The groups that have calls, and the place of each among these, by its number and by that as text.
local names, places = {}, {}
for i = 3, #ARGV, 7 do
  if not places[ARGV[i]] then
    names[#names + 1] = ARGV[i + 1]
    places[ARGV[i]], places[tonumber(ARGV[i])] = #names, #names
  end
end

-- Of each group: its calls, when the first one came, bytes, values, most calls if known, and when it is due. Read
-- everything before the first write, which also finds keys of another type.
local counts, firsts, bytes, values, sizes, dues = {}, {}, {}, {}, {}, {}
local states, earliest, woken = {}, {}, 0
for i = 1, #KEYS, 4 do
  local g = (i + 3) / 4
  if i == 1 then
    earliest, woken = redis.call('ZRANGE', KEYS[i + 1], 0, 0, 'WITHSCORES'), redis.call('LLEN', KEYS[i + 3])
    states, dues = redis.call('HMGET', KEYS[i + 2], unpack(names)), redis.call('ZMSCORE', KEYS[i + 1], unpack(names))
  end
  local n = places[g]
  if n then
    counts[n], firsts[n], bytes[n], values[n] = redis.call('LLEN', KEYS[i]), now, 0, 0
    dues[n] = dues[n] and number(dues[n])
    if states[n] and counts[n] > 0 then
      local first, size, b, v = string.match(states[n], '^(%d+) %d+ %d+ (%d+) (%d+) (%d+)$')
      if first then
        firsts[n], sizes[n] = math.min(now, tonumber(first)), tonumber(size)
        bytes[n], values[n] = tonumber(b), tonumber(v)
      end
    end
  end
end
local most, mostValues = tonumber(ARGV[1]), tonumber(ARGV[2])
-- Calls of a group, how long it waits, and the numbers in 'ms calls': most calls have the same.
local messages, quiets, limits, delays, calls = {}, {}, {}, {}, {}
for i = 3, #ARGV, 7 do
  local n, limit = places[ARGV[i]], ARGV[i + 3]
  if not delays[limit] then
    local delay, size = string.match(limit, '^(%d+) (%d+)$')
    delays[limit], calls[limit] = tonumber(delay), tonumber(size)
  end
  local full = sizes[n] and (counts[n] >= sizes[n] or bytes[n] >= most or values[n] >= mostValues)
  counts[n], bytes[n], values[n] = counts[n] + 1, bytes[n] + tonumber(ARGV[i + 4]), values[n] + tonumber(ARGV[i + 5])
  sizes[n], limits[n], quiets[n] = calls[limit], limit, now + tonumber(ARGV[i + 2])
  -- A full group was due already, and a worker may be combining its calls.
  if not (full and dues[n]) then
    dues[n] = quiets[n]
    if delays[limit] > 0 then dues[n] = math.min(quiets[n], firsts[n] + delays[limit]) end
    if counts[n] >= sizes[n] or bytes[n] >= most or values[n] >= mostValues then dues[n] = now end
  end
  if not messages[n] then messages[n] = {} end
  messages[n][#messages[n] + 1] = ARGV[i + 6]
end

local rows, scores, wakes = {}, {}, false
for i = 1, #KEYS, 4 do
  local n = places[(i + 3) / 4]
  if n then
    redis.call('RPUSH', KEYS[i], unpack(messages[n]))
    local state = text(firsts[n]) .. ' ' .. text(quiets[n]) .. ' ' .. limits[n]
    rows[2 * n - 1], rows[2 * n] = names[n], state .. ' ' .. text(bytes[n]) .. ' ' .. text(values[n])
    scores[2 * n - 1], scores[2 * n] = text(dues[n]), names[n]
    wakes = wakes or not earliest[2] or dues[n] < number(earliest[2])
  end
  if i + 3 == #KEYS then
    redis.call('HSET', KEYS[i + 2], unpack(rows))
    redis.call('ZADD', KEYS[i + 1], unpack(scores))
    if wakes and woken == 0 then redis.call('RPUSH', KEYS[i + 3], '1') end
  end
end
return (#ARGV - 2) / 7
