-- ack: end claimed tasks that are done.
-- KEYS  1 processing hash   2 claims hash   3 counters of the day   4 heartbeat
-- ARGV  1 life of the counters, s   2 claims found lost since the last call
--       3 value of the heartbeat under which all claims stood last
--       4 number b of finished batches   5... b batch numbers   then tokens, at most 500
-- Returns how many claims ended, if the heartbeat has that value, since no claim can have been lost then. Else a list:
--       for each token 1 if the claim stood, 0 if it did not.
-- O(n). Works on a full Redis: its first write is an HDEL.
local first = 5 + tonumber(ARGV[4])
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
local same = first <= #ARGV and redis.call('GET', KEYS[4]) == ARGV[3]
--#include ended CLAIMS=KEYS[1] FIRST=first STAND=same
if first > 5 then redis.call('HDEL', KEYS[2], unpack(ARGV, 5, first - 1)) end
--#include count STATS=KEYS[3] LIFE=ARGV[1]
count('processed', done)
count('lost', tonumber(ARGV[2]))
return answers
