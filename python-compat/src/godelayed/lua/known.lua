-- known: see that queues of one slot still know a worker, whose heartbeat was renewed just now.
-- KEYS  for each queue: worker set, functions hash
-- ARGV  1 worker id
-- Returns for each queue 1 if it has the worker's functions, else 0. A worker that is not in the set is added.
-- O(queues). Works on a full Redis: its first write is an SREM.
local reply, missing = {}, {}
-- Read everything before the first write.
for i = 1, #KEYS, 2 do
  missing[i] = redis.call('SISMEMBER', KEYS[i], ARGV[1]) == 0
  reply[#reply + 1] = redis.call('HEXISTS', KEYS[i + 1], ARGV[1])
end
for i = 1, #KEYS, 2 do
  if missing[i] then
    redis.call('SREM', KEYS[i], '')
    redis.call('SADD', KEYS[i], ARGV[1])
  end
end
return reply
