-- reform: replace the form of Python tasks on a queue that holds no task.
-- KEYS  1 mode   2 pending list   3 scheduled set   4 retry set   5 parked set   6 archived set   7 legacy processing hash
--       8 periodic hash   9 suspects list
-- ARGV  1 form that was found   2 form to settle instead
-- Returns the form that holds: the new one, unless another than the one found is there, or something is in one of these places. The
--       caller has looked for active tasks before.
-- O(1). A full Redis refuses it.
local form, holds = redis.call('GET', KEYS[1]), ARGV[2]
local n = redis.call('LLEN', KEYS[2]) + redis.call('ZCARD', KEYS[3]) + redis.call('ZCARD', KEYS[4]) + redis.call('ZCARD', KEYS[5])
n = n + redis.call('ZCARD', KEYS[6]) + redis.call('HLEN', KEYS[7]) + redis.call('HLEN', KEYS[8]) + redis.call('LLEN', KEYS[9])
if form and (form ~= ARGV[1] or n > 0) then holds = form end
redis.call('SET', KEYS[1], holds)
return holds
