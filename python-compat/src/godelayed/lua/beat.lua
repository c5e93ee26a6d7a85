-- beat: renew a worker's heartbeats on queues of one slot and count its claims.
-- KEYS  for each queue: heartbeat, processing hash, control hash
-- ARGV  1 life of a heartbeat, ms   2 1 to count claims   3 1 to look at the control hash
-- Returns {s, us of the server's clock, then for each queue: 1 renewed or 0 expired, number of claims or -1,
--       version of the control hash, 0 if there is none, or -1}.
-- O(queues). Works on a full Redis: PEXPIRE is allowed.
local time = redis.call('TIME')
local reply = {tonumber(time[1]), tonumber(time[2])}
for i = 1, #KEYS, 3 do
  reply[#reply + 1] = redis.call('PEXPIRE', KEYS[i], ARGV[1])
  reply[#reply + 1] = ARGV[2] == '1' and redis.call('HLEN', KEYS[i + 1]) or -1
  reply[#reply + 1] = ARGV[3] == '1' and (tonumber(redis.call('HGET', KEYS[i + 2], 'version') or 0) or 0) or -1
end
return reply
