-- release: give claimed tasks back unchanged, to the front of their queue or to the end of another.
-- KEYS  1 processing hash   2 claims hash   3 some pending list   4 its notify list
-- ARGV  1 'front' or 'back'   2 number b of finished batches   3... b batch numbers
--       then tokens in the order of their claim, at most 1,000
-- Returns for each token 1 if the claim stood, 0 if it did not.
-- O(n). Works on a full Redis: its first write is an HDEL.
local batches = tonumber(ARGV[2])
local start = 3 + batches
local answers, ones, messages, stood, seen = {}, {}, {}, {}, {}
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[2])
redis.call('LLEN', KEYS[3])
redis.call('LLEN', KEYS[4])
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
for i = start, #ARGV do
  local message = not seen[ARGV[i]] and redis.call('HGET', KEYS[1], ARGV[i])
  seen[ARGV[i]] = true
  answers[i - start + 1] = message and 1 or 0
  if message then
    messages[#messages + 1] = message
    ones[#ones + 1] = '1'
    stood[#stood + 1] = ARGV[i]
  end
end
if #messages > 0 then
  redis.call('HDEL', KEYS[1], unpack(stood))
  if ARGV[1] == 'front' then
    for i = #messages, 1, -1 do redis.call('LPUSH', KEYS[3], messages[i]) end
  else
    redis.call('RPUSH', KEYS[3], unpack(messages))
  end
  redis.call('RPUSH', KEYS[4], unpack(ones))
end
for i = 3, 2 + batches do redis.call('HDEL', KEYS[2], ARGV[i]) end
return answers
