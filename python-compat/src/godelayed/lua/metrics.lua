-- metrics: replace values of a metrics hash, unless somebody else has replaced them.
-- KEYS  1 metrics hash
-- ARGV  1 life of the hash, s
--       then for each value, at most 100: field, old value, new value
-- Returns for each value 1 if it was replaced, 0 if it is not the old one.
-- O(n). A full Redis refuses it. An old value that does not exist is ''.
local answers = {}
for i = 2, #ARGV, 3 do
  local same = (redis.call('HGET', KEYS[1], ARGV[i]) or '') == ARGV[i + 1]
  if same then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2]) end
  answers[#answers + 1] = same and 1 or 0
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return answers
