-- look: what is known of one task.
-- KEYS  1 scheduled set   2 retry set   3 parked set   4 archived set   5 completed set   6 tasks hash   7 info hash   8 results hash
-- ARGV  1 id   2 1 to return its message
-- Returns {ms since 1970, scores in the five sets, info, what is kept or was reported of it, message}, nil for what there is not.
-- O(1). Reads only.
local time = redis.call('TIME')
local reply = {time[1] * 1000 + math.floor(time[2] / 1000)}
reply[2] = redis.call('ZSCORE', KEYS[1], ARGV[1])
reply[3] = redis.call('ZSCORE', KEYS[2], ARGV[1])
reply[4] = redis.call('ZSCORE', KEYS[3], ARGV[1])
reply[5] = redis.call('ZSCORE', KEYS[4], ARGV[1])
reply[6] = redis.call('ZSCORE', KEYS[5], ARGV[1])
reply[7] = redis.call('HGET', KEYS[7], ARGV[1])
reply[8] = redis.call('HGET', KEYS[8], ARGV[1])
reply[9] = ARGV[2] == '1' and redis.call('HGET', KEYS[6], ARGV[1])
return reply
