-- page: read messages of a list; of those that are too large, only their sizes.
-- KEYS  1 pending or group list
-- ARGV  1 messages to skip   2 most messages, at most 1,000
--       3 most bytes of a message, and in all four times as many
-- Returns the messages in order, and for one that is too large only its size; fewer than asked for when the bytes in
--       all are used up.
-- O(n). Reads only.
local from, most, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
-- Read in steps sized by the messages seen so far, so that little is read in vain.
local reply, n, bytes, room, step = {}, 0, 0, 4 * limit, 8
for _ = 1, most do
  local some = redis.call('LRANGE', KEYS[1], from + n, from + n + math.min(step, most - n) - 1)
  for i = 1, #some do
    local size = #some[i]
    bytes = bytes + size
    if n > 0 and bytes > room then break end
    n = n + 1
    reply[n] = size > limit and size or some[i]
  end
  if bytes > room or #some < step or n == most then break end
  step = math.min(256, math.floor((room - bytes) * n / math.max(bytes, 1)) + 1)
end
return reply
