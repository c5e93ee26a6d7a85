-- beat: renew a worker's heartbeats on queues of one slot and count its claims.
-- KEYS  for each queue: heartbeat, processing hash, control hash
-- ARGV  1 life of a heartbeat, ms   2 1 to count claims   3 1 to look at the control hash
--       4 1 to leave out keys that are no hashes, which takes two commands more for each queue
-- Returns {s, us of the server's clock, then for each queue: 1 renewed or 0 expired, number of claims or -1,
--       version of the control hash, 0 if there is none, or -1}.
-- O(queues). Works on a full Redis: PEXPIRE is allowed.
local time = redis.call('TIME')
local reply = {tonumber(time[1]), tonumber(time[2])}
for i = 1, #KEYS, 3 do
  local count, look = ARGV[2] == '1', ARGV[3] == '1'
  if ARGV[4] == '1' then
    local claims, control = redis.call('TYPE', KEYS[i + 1])['ok'], redis.call('TYPE', KEYS[i + 2])['ok']
    count, look = count and (claims == 'hash' or claims == 'none'), look and (control == 'hash' or control == 'none')
  end
  reply[#reply + 1] = redis.call('PEXPIRE', KEYS[i], ARGV[1])
  reply[#reply + 1] = count and redis.call('HLEN', KEYS[i + 1]) or -1
  reply[#reply + 1] = look and (tonumber(redis.call('HGET', KEYS[i + 2], 'version') or 0) or 0) or -1
end
return reply
