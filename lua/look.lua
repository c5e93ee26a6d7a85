-- look: read what is known of one task.
-- KEYS  1 scheduled set   2 retry set   3 parked set   4 archived set   5 completed set   6 tasks hash   7 info hash
--       8 results hash
-- ARGV  1 id   2 most bytes of its message to return, 0 for none   3 most bytes of the others
-- Returns {ms since 1970, scores in the five sets, info, its value in the results hash, message}. What is missing is
--       nil, so are an info and a result that are too large; of a message that is too large, only the size is returned.
-- O(1). Reads only.
--#include clock
local reply = {now}
reply[2] = redis.call('ZSCORE', KEYS[1], ARGV[1])
reply[3] = redis.call('ZSCORE', KEYS[2], ARGV[1])
reply[4] = redis.call('ZSCORE', KEYS[3], ARGV[1])
reply[5] = redis.call('ZSCORE', KEYS[4], ARGV[1])
reply[6] = redis.call('ZSCORE', KEYS[5], ARGV[1])
local most, others = tonumber(ARGV[2]), tonumber(ARGV[3])
reply[7] = redis.call('HSTRLEN', KEYS[7], ARGV[1]) <= others and redis.call('HGET', KEYS[7], ARGV[1])
reply[8] = redis.call('HSTRLEN', KEYS[8], ARGV[1]) <= others and redis.call('HGET', KEYS[8], ARGV[1])
reply[9] = most > 0 and redis.call('HSTRLEN', KEYS[6], ARGV[1])
if most > 0 and reply[9] <= most then reply[9] = redis.call('HGET', KEYS[6], ARGV[1]) end
return reply
