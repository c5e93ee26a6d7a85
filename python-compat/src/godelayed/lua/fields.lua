-- fields: read fields of a hash; of values that are too large, only their sizes.
-- KEYS  1 hash of messages or infos
-- ARGV  1 most bytes of a value   2 most bytes in all   3... fields, at most 1,000
-- Returns for each field its value, nil if there is none, or its size if it is too large. It stops before a value that
--       exceeds the bytes in all, unless that is the first.
-- O(n). Reads only.
local limit, room, reply, bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), {}, 0
for i = 3, #ARGV do
  local size = redis.call('HSTRLEN', KEYS[1], ARGV[i])
  if size > limit then
    reply[i - 2] = size
  else
    bytes = bytes + size
    if bytes > room and i > 3 then break end
    reply[i - 2] = redis.call('HGET', KEYS[1], ARGV[i])
  end
end
return reply
