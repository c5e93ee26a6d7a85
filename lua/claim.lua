-- claim: move pending tasks into the worker's processing hash.
-- KEYS  1 pending list   2 notify list   3 heartbeat   4 processing hash   5 claims hash
-- ARGV  1 batch number   2 most tasks, at most 2,500   3 notifications the caller holds, 0 or 1   4 most bytes
--       5 1 when legacy workers share the queue   6 1 to mend the notify list of such a queue
-- Returns {1, tasks left, message...}; {0, 0} without heartbeat; {-1, 0} when the batch number was used before.
-- O(n). Works on a full Redis: its first write is an LPOP or LTRIM.
local most, held = tonumber(ARGV[2]), tonumber(ARGV[3])
local legacy = ARGV[5] == '1'
-- Lists are measured first: while a slot moves, a key that was emptied cannot be touched again.
local left, notified = redis.call('LLEN', KEYS[1]), redis.call('LLEN', KEYS[2])
local status = 1
if redis.call('EXISTS', KEYS[3]) == 0 then
  status, most = 0, 0
elseif redis.call('HEXISTS', KEYS[4], ARGV[1] .. '-1') == 1 then
  status, most = -1, 0
end
most = math.min(most, left)
-- A legacy worker that is woken must find a task: leave those that have a notification.
if legacy then most = math.min(most, held + notified) end

-- In steps that the sizes so far allow, so that little too much is taken and given back.
local messages, n, bytes, room, step = {}, 0, 0, tonumber(ARGV[4]), 8
for _ = 1, most do
  local popped = redis.call('LPOP', KEYS[1], math.min(step, most - n)) or {}
  for i = 1, #popped do
    bytes = bytes + #popped[i]
    if n > 0 and bytes > room then
      for j = #popped, i, -1 do redis.call('LPUSH', KEYS[1], popped[j]) end
      break
    end
    n = n + 1
    messages[n] = popped[i]
  end
  if bytes > room or #popped < step or n == most then break end
  step = math.min(64, math.floor((room - bytes) * n / math.max(bytes, 1)) + 1)
end

local reply = {status, 0}
if n > 0 then
  local fields = {}
  for i = 1, n do
    fields[2 * i - 1] = ARGV[1] .. '-' .. i
    fields[2 * i] = messages[i]
    reply[i + 2] = messages[i]
  end
  redis.call('HSET', KEYS[4], unpack(fields))
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[5], ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000))
  left = left - n
end
reply[2] = left
local mend = not legacy or ARGV[6] == '1'
if left == 0 and mend then
  redis.call('LTRIM', KEYS[2], 1, 0)
else
  local spend = math.min(math.max(0, n - held), notified)
  if left > 0 and (n == 0 and held == 1 or mend and notified == spend) then
    -- One that is spent and one that is added cancel out.
    if spend == 0 then
      redis.call('LTRIM', KEYS[2], 0, -1)
      redis.call('RPUSH', KEYS[2], '1')
    end
    spend = spend - 1
  end
  if spend > 0 then redis.call('LPOP', KEYS[2], spend) end
end
return reply
