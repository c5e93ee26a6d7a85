-- peek: read the first calls of a group, or those behind.
-- KEYS  1 group list   2 gathered hash   3 control hash
-- ARGV  1 group   2 most bytes, unless the first message alone is larger   3 most messages
--       4 most bytes of one message   5 how many calls were read before
-- Returns {most calls of the group or 0 if unknown, version of the control hash or 0, message...}: with those read
--       before, one message more than most calls, if there is one. It stops before a message that is too large; if that
--       is the first of the group, only its size is returned.
-- O(n). Reads only.
local reply = {0, tonumber(redis.call('HGET', KEYS[3], 'version') or 0) or 0}
local state = redis.call('HGET', KEYS[2], ARGV[1])
local size = tonumber(string.match(state or '', '^%d+ %d+ %d+ (%d+) %d+ %d+$') or '')
local from, most = tonumber(ARGV[5]), tonumber(ARGV[3])
if size then
  reply[1] = size
  most = math.min(most, size + 1 - from)
end
-- Read one message, and then in steps sized by those seen so far, so that little is read in vain.
local n, bytes, room, limit, step = 0, 0, tonumber(ARGV[2]), tonumber(ARGV[4]), 1
for _ = 1, most do
  local some = redis.call('LRANGE', KEYS[1], from + n, from + n + math.min(step, most - n) - 1)
  for i = 1, #some do
    local size = #some[i]
    bytes = bytes + size
    if size > limit then
      if from + n == 0 then reply[3] = size end
      return reply
    end
    if from + n > 0 and bytes > room then break end
    n = n + 1
    reply[n + 2] = some[i]
  end
  if bytes > room or #some < step or n == most then break end
  step = math.min(16, 4 * step, math.floor((room - bytes) * n / math.max(bytes, 1)) + 1)
end
return reply
