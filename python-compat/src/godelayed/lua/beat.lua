-- beat: renew a worker's heartbeats on queues of one slot and count its claims.
-- KEYS  for each queue: heartbeat, processing hash
-- ARGV  1 life of a heartbeat, ms   2 1 to count claims
-- Returns {s, us of the server's clock, then for each queue: 1 renewed or 0 expired, number of claims or -1}.
-- O(queues). Works on a full Redis: PEXPIRE is allowed.
local time = redis.call('TIME')
local reply = {tonumber(time[1]), tonumber(time[2])}
for i = 1, #KEYS, 2 do
  reply[#reply + 1] = redis.call('PEXPIRE', KEYS[i], ARGV[1])
  reply[#reply + 1] = ARGV[2] == '1' and redis.call('HLEN', KEYS[i + 1]) or -1
end
return reply
