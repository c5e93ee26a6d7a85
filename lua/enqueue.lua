-- enqueue: make tasks pending, each with its notification.
-- KEYS  1 pending list   2 notify list
-- ARGV  1... messages, in order, at most 1,000
-- Returns the length of the pending list.
-- O(n). A full Redis refuses it as a whole.
redis.call('LLEN', KEYS[2]) -- of another type, it is an error before anything is written
local length = redis.call('RPUSH', KEYS[1], unpack(ARGV))
if #ARGV == 1 then
  redis.call('RPUSH', KEYS[2], '1')
else
  local ones = {}
  for i = 1, #ARGV do ones[i] = '1' end
  redis.call('RPUSH', KEYS[2], unpack(ones))
end
return length
