-- unlock: free the lock of a task that starts, if the lock lasts until the start, or of one that has left the queue.
-- KEYS  1 locks hash   2 revoked set
-- ARGV  1 task id   2 lock   3 1 if it has left: its id is free too
-- Returns 0 when nothing is left to free at its end, 1 when the task still holds its id, -1 when it was replaced and
--       must not start.
-- O(1). Works on a full Redis: its first write is an HDEL.
if ARGV[3] ~= '1' and redis.call('ZSCORE', KEYS[2], ARGV[1]) then return -1 end
local mark = '#' .. ARGV[1]
local held = redis.call('HMGET', KEYS[1], ARGV[2], mark)
local function mine(value) return value and string.match(value, '^%d+ (.*)$') == ARGV[1] end
local left, own = mine(held[2]) and 1 or 0, {}
if mine(held[1]) then own[1] = ARGV[2] end
if left == 1 and ARGV[3] == '1' then
  own[#own + 1] = mark
  left = 0
end
if #own > 0 then redis.call('HDEL', KEYS[1], unpack(own)) end
return left
