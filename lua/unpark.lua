-- unpark: make parked tasks pending again.
-- KEYS  1 parked set   2 tasks hash   3 info hash   4 pending list   5 notify list
-- ARGV  1... task ids, at most 1,000
-- Returns the number of tasks made pending.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
local ids, messages, ones, seen = {}, {}, {}, {}
-- Keys of another type are an error before anything is removed.
redis.call('HLEN', KEYS[3])
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[5])
-- All is read before anything is removed: while a slot moves, a key that was emptied cannot be touched again.
for i = 1, #ARGV do
  if not seen[ARGV[i]] and redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    ids[#ids + 1] = ARGV[i]
    seen[ARGV[i]] = true
    local message = redis.call('HGET', KEYS[2], ARGV[i])
    if message then
      messages[#messages + 1] = message
      ones[#ones + 1] = '1'
    end
  end
end
if #ids == 0 then return 0 end
redis.call('ZREM', KEYS[1], unpack(ids))
redis.call('HDEL', KEYS[2], unpack(ids))
redis.call('HDEL', KEYS[3], unpack(ids))
if #messages > 0 then
  redis.call('RPUSH', KEYS[4], unpack(messages))
  redis.call('RPUSH', KEYS[5], unpack(ones))
end
return #messages
