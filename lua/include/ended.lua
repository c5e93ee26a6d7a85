-- ended: end the claims in the processing hash CLAIMS whose tokens are ARGV[FIRST] and those behind it. done is how
-- many stood. answers is the same if STAND, because no claim can have been lost then; else a list of 1 for each claim
-- that stood, 0 for the others.
local answers, done = {}, 0
if STAND then
  done = redis.call('HDEL', CLAIMS, unpack(ARGV, FIRST))
  answers = done
else
  local stood, seen = {''}, {}
  for i = FIRST, #ARGV do
    local stands = seen[ARGV[i]] and 0 or redis.call('HEXISTS', CLAIMS, ARGV[i])
    seen[ARGV[i]] = true
    answers[#answers + 1] = stands
    if stands == 1 then stood[#stood + 1] = ARGV[i] end
  end
  done = #stood - 1
  redis.call('HDEL', CLAIMS, unpack(stood))
end
