-- page: read messages of a list; of those that are too large, only their sizes.
-- KEYS  1 pending or group list
-- ARGV  1 place of the first message, from 0; -1 for the last message, -2 for the one before it, and so on
--       2 most messages, at most 1,000   3 most bytes of a message, and of all unless the first is larger
--       4 1 to go back from there      5 text to look for, or nothing: '-' stands for messages without it
-- Returns the messages as they are met, and for one that is too large only its size; fewer than asked for when the
--       bytes in all are used up. Places behind the end of the list, on the way back, hold gaps as those of withdraw.
-- O(n). Reads only.
local from, most, limit, back = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local text = ARGV[5] or ''
local reply, n, bytes, step = {}, 0, 0, 1
if back then
  local length = redis.call('LLEN', KEYS[1])
  if from < 0 then from = from + length end
  for i = 1, most do
    if from - n < length then break end
    reply[i], n = '-', i
  end
end
-- Read one message, and then in steps sized by those seen so far, so that little is read in vain.
for _ = 1, most do
  step = math.min(step, most - n)
  local first, last = from + n, from + n + step - 1
  if back then first, last = math.max(from - n - step + 1, 0), from - n end
  if step < 1 or back and last < 0 then break end
  local some = redis.call('LRANGE', KEYS[1], first, last)
  for i = 1, #some do
    local message = some[back and #some + 1 - i or i]
    local size = #message
    bytes = bytes + size
    if bytes > size and bytes > limit then break end
    n = n + 1
    reply[n] = size > limit and size or message
    if text ~= '' and not string.find(size > limit and '' or message, text, 1, true) then reply[n] = '-' end
  end
  if bytes > limit or #some < step then break end
  step = math.min(8, 2 * step, math.floor((limit - bytes) * n / math.max(bytes, 1)) + 1)
end
return reply
