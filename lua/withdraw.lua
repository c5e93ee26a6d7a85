-- withdraw: take pending tasks out of their list, and file them in a set or drop them.
-- KEYS  1 some pending list   2 its notify list   3 scheduled or archived set   4 tasks hash   5 info hash
--       6 control hash   7 locks hash   8 counters of the day   9 wake list   10 revoked set
-- ARGV  1 archive, move (archive, but do not count), schedule or drop   2 1 if legacy workers share the queue
--       3 life of the counters, s
--       4 members of the list to look at on each side of the places, at most 2,000
--       then for each task, at most 100: place from the beginning of the list, message, id, time in the set in ms,
--       info, channel of its end, lock
-- Returns for each task 1 if it was taken, 0 if it is not near the places or was canceled, -1 if another task has its
--       id in the set.
-- O(n + members looked at). It is O(n + list) with legacy workers. Works on a full Redis: its first write is an LTRIM.
--       In the place of a task it leaves a gap, the text -, which is no message: claim drops it. Taking members out of
--       the middle of a list takes long; that is done only where legacy workers would find the gap. The field gaps of
--       the control hash counts gaps. The place is where the task was last seen, 0 for the oldest. An id, an info, a
--       channel or a lock may be missing: ''.
local how, legacy, reach = ARGV[1], ARGV[2] == '1', tonumber(ARGV[4])
-- Fail on keys of another type before anything is removed.
redis.call('LLEN', KEYS[2])
redis.call('ZCARD', KEYS[3])
redis.call('HLEN', KEYS[5])
redis.call('HLEN', KEYS[6])
redis.call('HLEN', KEYS[8])
redis.call('LLEN', KEYS[9])
--#include locks LOCKS=KEYS[7]
local canceled = redis.call('ZCARD', KEYS[10]) > 0
local length = redis.call('LLEN', KEYS[1])
--#include clock
local answers, taken, fields, owners, waits, used, places = {}, {}, {}, {}, {}, {}, {}
-- Read everything before the first write. Most tasks are where they were seen.
local sought, missing, low, high = {}, 0, length, 0
for i = 5, #ARGV, 7 do
  local place, message = tonumber(ARGV[i]), ARGV[i + 1]
  low, high = math.min(low, place), math.max(high, place)
  if not used[place] and redis.call('LINDEX', KEYS[1], place) == message then
    used[place], places[i] = true, place
  else
    local those = sought[message] or {}
    those[#those + 1] = i
    sought[message], missing = those, missing + 1
  end
end
-- Others have moved: to the front when older ones were claimed, to the back when some were released.
local room = 8388608
local function look(first, last)
  for part = 0, 100 do
    local from, to = math.max(last - 50 * part - 49, first), last - 50 * part
    if missing == 0 or room < 0 or to < from then break end
    local some = redis.call('LRANGE', KEYS[1], from, to)
    for j = 1, math.min(#some, 50) do
      local those, place = sought[some[j]], from + j - 1
      if those and #those > 0 and not used[place] then
        used[place], places[those[#those]] = true, place
        those[#those], missing = nil, missing - 1
      end
      room = room - #some[j]
    end
  end
end
look(math.max(low - reach, 0), math.min(high, length - 1))
look(high + 1, math.min(high + reach, length - 1))
for i = 5, #ARGV, 7 do
  local answer, id = places[i] and 1 or 0, ARGV[i + 2]
  if canceled and redis.call('ZSCORE', KEYS[10], id) then answer = 0 end
  if answer == 1 and how ~= 'drop' and redis.call('HEXISTS', KEYS[4], id) == 1 then answer = -1 end
  if answer == 1 then
    taken[#taken + 1] = i
    if id ~= '' and ARGV[i + 6] ~= '' then
      owners[#owners + 1] = id
      waits[#owners] = math.max(tonumber(ARGV[i + 3]) - now, 0)
      fields[#fields + 1], fields[#fields + 2] = ARGV[i + 6], '#' .. id
    end
  end
  answers[#answers + 1] = answer
end
if #taken == 0 then return answers end
redis.call('LTRIM', KEYS[2], 0, -1)
for j = 1, #taken do
  local i = taken[j]
  redis.call('LSET', KEYS[1], places[i], '-')
  if how ~= 'drop' then
    redis.call('ZADD', KEYS[3], ARGV[i + 3], ARGV[i + 2])
    redis.call('HSET', KEYS[4], ARGV[i + 2], ARGV[i + 1])
    if ARGV[i + 4] ~= '' then redis.call('HSET', KEYS[5], ARGV[i + 2], ARGV[i + 4]) end
  end
  if ARGV[i + 5] ~= '' then redis.call('PUBLISH', ARGV[i + 5], 'ended') end
end
local counter = how == 'drop' and 'canceled' or how == 'archive' and 'archived'
--#include count STATS=KEYS[8] LIFE=ARGV[3]
if counter then count(counter, #taken) end
if how == 'schedule' and redis.call('LLEN', KEYS[9]) == 0 then redis.call('RPUSH', KEYS[9], '1') end
if legacy then
  redis.call('LREM', KEYS[1], high > length / 2 and -#taken or #taken, '-')
  redis.call('LPOP', KEYS[2], #taken)
else
  -- Gaps at the ends of the list go at once.
  local dropped = 0
  for _ = 1, 1000 do
    if redis.call('LINDEX', KEYS[1], -1) ~= '-' then break end
    redis.call('RPOP', KEYS[1])
    dropped = dropped + 1
  end
  for _ = 1, 1000 do
    if redis.call('LINDEX', KEYS[1], 0) ~= '-' then break end
    redis.call('LPOP', KEYS[1])
    dropped = dropped + 1
  end
  if dropped > 0 then redis.call('LPOP', KEYS[2], dropped) end
  local gaps = redis.call('HINCRBY', KEYS[6], 'gaps', #taken - dropped)
  if gaps <= 0 then redis.call('HDEL', KEYS[6], 'gaps') end
end
local own, later = held(fields, owners, waits)
if how == 'schedule' then
  if #later > 0 then redis.call('HSET', KEYS[7], unpack(later)) end
elseif #own > 0 then
  redis.call('HDEL', KEYS[7], unpack(own))
end
return answers
