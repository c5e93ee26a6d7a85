-- rerun: make filed tasks pending, with new messages: archived ones again, others at once.
-- KEYS  1 the sorted set   2 tasks hash   3 info hash   4 pending list   5 notify list   6 revoked set
--       7 locks hash
-- ARGV  1 ms that an id stays taken
--       then for each task, at most 200: name that it is filed under, id, old message, new message, 1 to keep its id
--       taken
-- Returns for each task 1 if it is pending now, 0 if it is not in the set, -1 if its message is not the old one.
-- O(n log m). Works on a full Redis: its first write is a ZREM. It lifts the revocation of a canceled task.
--#include clock
local answers, names, ids, messages, ones, seen = {}, {}, {}, {}, {}, {}
local own = {}
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[3])
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[5])
redis.call('HLEN', KEYS[7])
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
local revoked = redis.call('ZCARD', KEYS[6]) > 0
for i = 2, #ARGV, 5 do
  local answer = 0
  if not seen[ARGV[i]] and redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    seen[ARGV[i]] = true
    answer = -1
    if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 2] then
      answer = 1
      names[#names + 1] = ARGV[i]
      ids[#ids + 1] = ARGV[i + 1]
      messages[#messages + 1] = ARGV[i + 3]
      ones[#ones + 1] = '1'
      if ARGV[i + 4] == '1' then
        own[#own + 1] = '#' .. ARGV[i + 1]
        own[#own + 1] = string.format('%.0f', now + tonumber(ARGV[1])) .. ' ' .. ARGV[i + 1]
      end
    end
  end
  answers[#answers + 1] = answer
end
if #names == 0 then return answers end
redis.call('ZREM', KEYS[1], unpack(names))
redis.call('HDEL', KEYS[2], unpack(names))
redis.call('HDEL', KEYS[3], unpack(names))
if revoked then redis.call('ZREM', KEYS[6], unpack(ids)) end
redis.call('RPUSH', KEYS[4], unpack(messages))
redis.call('RPUSH', KEYS[5], unpack(ones))
if #own > 0 then redis.call('HSET', KEYS[7], unpack(own)) end
return answers
