-- enqueue: make tasks pending, each with its notification.
-- KEYS  1 pending list   2 notify list
-- ARGV  1... messages, in order, at most 1,000
-- Returns the number of tasks.
-- O(n). A full Redis refuses it as a whole.
redis.call('LLEN', KEYS[1]) -- fails on a key of another type before anything is written
if #ARGV == 1 then
  redis.call('RPUSH', KEYS[2], '1')
else
  local ones = {}
  for i = 1, #ARGV do ones[i] = '1' end
  redis.call('RPUSH', KEYS[2], unpack(ones))
end
redis.call('RPUSH', KEYS[1], unpack(ARGV))
return #ARGV
