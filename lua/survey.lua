-- survey: read what a sweeper needs to know of queues of one slot, and take its advisory lock on each.
-- KEYS  for each queue: sweeper lock, worker set, pending list, notify list, legacy processing hash
-- ARGV  1 sweeper id   2 life of the lock, ms   3 most worker ids in all
-- Returns for each queue {1 if the lock is ours else 0, worker ids, pending, notifications, legacy claims}. Instead of
--       worker ids that would be too many in all, there is nil.
-- O(workers). Works on a full Redis: its first write is a PEXPIRE or SREM. Four commands for a queue that is empty.
local reply, owners, room = {}, {}, tonumber(ARGV[3])
-- Read everything before the first write.
for i = 1, #KEYS, 5 do
  owners[i] = redis.call('GET', KEYS[i])
  local pending, noti, legacy = 0, 0, 0
  if redis.call('EXISTS', KEYS[i + 2], KEYS[i + 3], KEYS[i + 4]) > 0 then
    pending, noti = redis.call('LLEN', KEYS[i + 2]), redis.call('LLEN', KEYS[i + 3])
    legacy = redis.call('HLEN', KEYS[i + 4])
  end
  -- All of them in one command, if they are not more.
  local scanned = redis.call('SSCAN', KEYS[i + 1], '0', 'COUNT', room + 1)
  local workers = scanned[1] == '0' and #scanned[2] <= room and scanned[2]
  if workers then room = room - #workers end
  reply[#reply + 1] = {0, workers, pending, noti, legacy}
end
for i = 1, #KEYS, 5 do
  local seen = reply[(i + 4) / 5]
  if owners[i] == ARGV[1] then
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
    seen[1] = 1
  elseif not owners[i] then
    redis.call('SREM', KEYS[i + 1], '')
    redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
    seen[1] = 1
  end
end
return reply
