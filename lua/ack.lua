-- ack: end claimed tasks that are done.
-- KEYS  1 processing hash   2 claims hash   3 counters of the day
-- ARGV  1 life of the counters, s   2 claims found lost since the last call   3 number b of finished batches   4... b batch numbers
--       then tokens, at most 1,000
-- Returns for each token 1 if the claim stood, 0 if it did not.
-- O(n). Works on a full Redis: its first write is an HDEL.
local batches = tonumber(ARGV[3])
local answers, done = {}, 0
for i = 4 + batches, #ARGV do
  local stood = redis.call('HDEL', KEYS[1], ARGV[i])
  answers[#answers + 1] = stood
  done = done + stood
end
for i = 4, 3 + batches do redis.call('HDEL', KEYS[2], ARGV[i]) end
if #ARGV == 3 then redis.call('HDEL', KEYS[2], '') end
local function count(name, n)
  if n > 0 and redis.call('HINCRBY', KEYS[3], name, n) == n then redis.call('EXPIRE', KEYS[3], ARGV[1]) end
end
count('processed', done)
count('lost', tonumber(ARGV[2]))
return answers
