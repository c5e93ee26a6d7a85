-- refile: move filed tasks to another set or another time, with new messages.
-- KEYS  1 the sorted set   2 the other sorted set   3 tasks hash   4 info hash   5 wake list
--       6 locks hash   7 counters of the day
-- ARGV  1 1 if that is the archived set, 2 if both are it, 3 as 1 but do not count, else 0   2 life of the counters, s
--       then for each task, at most 100: id, old message, new message, time in the set in ms, info, channel of its end,
--       new id, lock
-- Returns for each task 1 if it is in the other set now, 0 if it was not in the first, -1 if its message is not the old
--       one, or another task has its new id.
-- O(n log m). Works on a full Redis: its first write is a ZREM. Both sets may be the same. An info, a channel, a
--       new id or a lock may be missing: ''. Of several callers that give a task a new id, only one succeeds.
--#include number
local archives = ARGV[1] ~= '0'
-- Fail on keys of another type before anything is removed.
redis.call('ZCARD', KEYS[2])
redis.call('HLEN', KEYS[4])
redis.call('LLEN', KEYS[5])
redis.call('HLEN', KEYS[7])
--#include locks LOCKS=KEYS[6]
-- Read everything before the first write.
local answers, found, ids, seen = {}, {}, {}, {}
local fields, owners, waits = {}, {}, {}
for i = 3, #ARGV, 8 do
  local answer = 0
  local due = not seen[ARGV[i]] and redis.call('ZSCORE', KEYS[1], ARGV[i])
  if due then
    seen[ARGV[i]] = true
    answer = redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1] and 1 or -1
    local new = ARGV[i + 6]
    if new ~= '' and (seen[new] or redis.call('HEXISTS', KEYS[3], new) == 1) then answer = -1 end
    seen[new] = new ~= ''
    if answer == 1 then
      found[#found + 1] = i
      ids[#ids + 1] = ARGV[i]
      if ARGV[i + 7] ~= '' then
        owners[#owners + 1] = ARGV[i]
        waits[#owners] = math.max(tonumber(ARGV[i + 3]) - number(due), 0)
        fields[#fields + 1], fields[#fields + 2] = ARGV[i + 7], '#' .. ARGV[i]
      end
    end
  end
  answers[#answers + 1] = answer
end
if #ids == 0 then return answers end
redis.call('ZREM', KEYS[1], unpack(ids))
for j = 1, #found do
  local i = found[j]
  local id = ARGV[i + 6] ~= '' and ARGV[i + 6] or ARGV[i]
  redis.call('ZADD', KEYS[2], ARGV[i + 3], id)
  if id ~= ARGV[i] then
    redis.call('HDEL', KEYS[3], ARGV[i])
    redis.call('HDEL', KEYS[4], ARGV[i])
  end
  if id ~= ARGV[i] or ARGV[i + 2] ~= ARGV[i + 1] then redis.call('HSET', KEYS[3], id, ARGV[i + 2]) end
  if ARGV[i + 4] ~= '' then redis.call('HSET', KEYS[4], id, ARGV[i + 4]) end
  if ARGV[i + 5] ~= '' then redis.call('PUBLISH', ARGV[i + 5], 'ended') end
end
local own, later = held(fields, owners, waits)
if not archives then
  if redis.call('LLEN', KEYS[5]) == 0 then redis.call('RPUSH', KEYS[5], '1') end
  if #later > 0 then redis.call('HSET', KEYS[6], unpack(later)) end
  return answers
end
if ARGV[1] == '2' then return answers end
--#include count STATS=KEYS[7] LIFE=ARGV[2]
if ARGV[1] == '1' then count('archived', #ids) end
if #own > 0 then redis.call('HDEL', KEYS[6], unpack(own)) end
return answers
