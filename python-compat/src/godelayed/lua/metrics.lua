-- metrics: replace values of a metrics hash, unless somebody else has replaced them.
-- KEYS  1 metrics hash
-- ARGV  1 life of the hash, s   2 fields from which on it takes no new ones
--       then for each value, at most 100: field, old value, new value
-- Returns for each value 1 if it was replaced, 0 if it is not the old one, or the hash is full.
-- O(n). A full Redis refuses it. An old value that does not exist is ''. A full hash still takes a number and a space,
--       which is the field of all functions that have none of their own.
local answers, room = {}, tonumber(ARGV[2])
local fields = redis.call('HLEN', KEYS[1])
for i = 3, #ARGV, 3 do
  local old = redis.call('HGET', KEYS[1], ARGV[i])
  local fits = old or fields < room or string.match(ARGV[i], '^%d+ $')
  local same = fits and (old or '') == ARGV[i + 1]
  if same then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2])
    if not old then fields = fields + 1 end
  end
  answers[#answers + 1] = same and 1 or 0
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return answers
