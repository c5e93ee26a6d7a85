-- unlock: free the lock of a task that starts, if the lock lasts until the start, or of one that has left the queue.
-- KEYS  1 locks hash   2 locked set   3 revoked set
-- ARGV  1 task id   2 1 if it has left: its id is free too
-- Returns 0 when nothing is left to free at its end, 1 when the task still holds its id, -1 when it was replaced and
--       must not start.
-- O(1). Works on a full Redis: its first write is an HDEL.
if ARGV[2] ~= '1' and redis.call('ZSCORE', KEYS[3], ARGV[1]) then return -1 end
local mark = '@' .. ARGV[1]
local lock = redis.call('HGET', KEYS[1], mark)
local mine = lock and redis.call('HGET', KEYS[1], lock) == ARGV[1]
local left = redis.call('HEXISTS', KEYS[1], '#' .. ARGV[1])
local names = {mark}
if mine then names[2] = lock end
if left == 1 and ARGV[2] == '1' then
  names[#names + 1] = '#' .. ARGV[1]
  left = 0
end
redis.call('ZCARD', KEYS[2]) -- fails on a key of another type before anything is removed
redis.call('HDEL', KEYS[1], unpack(names))
redis.call('ZREM', KEYS[2], unpack(names))
return left
