-- unlock: free the lock of a task that starts, if it lasts until then.
-- KEYS  1 locks hash   2 locked set   3 revoked set
-- ARGV  1 task id
-- Returns 0 when nothing is left to free at its end, 1 when it still has its id to itself, -1 when the task was replaced and must not start.
-- O(1). Works on a full Redis: its first write is an HDEL.
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then return -1 end
local mark = '@' .. ARGV[1]
local lock = redis.call('HGET', KEYS[1], mark)
local mine = lock and redis.call('HGET', KEYS[1], lock) == ARGV[1]
local left = redis.call('HEXISTS', KEYS[1], '#' .. ARGV[1])
if lock then
  redis.call('HDEL', KEYS[1], mark, mine and lock or mark)
  redis.call('ZREM', KEYS[2], mark, mine and lock or mark)
end
return left
