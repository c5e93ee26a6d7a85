-- delete: delete archived and completed tasks with their messages, infos and results.
-- KEYS  1 archived set   2 tasks hash   3 info hash   4 completed set   5 results hash
-- ARGV  1 archived or completed to delete only these, else ''   2... ids, at most 1,000
-- Returns the number of tasks deleted. An id that was archived and completed counts twice; an expired completed task
--       does not count.
-- O(n log m). Works on a full Redis: its first write is a ZREM.
--#include number
--#include clock
local archived, completed, seen, over = {}, {}, {}, 0
-- Fail on keys of another type before anything is removed.
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[5])
-- Read everything before the first removal: while a slot moves, a command on an emptied key fails.
for i = 2, #ARGV do
  if not seen[ARGV[i]] then
    seen[ARGV[i]] = true
    if ARGV[1] ~= 'completed' and redis.call('ZSCORE', KEYS[1], ARGV[i]) then archived[#archived + 1] = ARGV[i] end
    local expiry = ARGV[1] ~= 'archived' and redis.call('ZSCORE', KEYS[4], ARGV[i])
    if expiry then completed[#completed + 1] = ARGV[i] end
    if expiry and number(expiry) <= now then over = over + 1 end
  end
end
if #archived > 0 then
  redis.call('ZREM', KEYS[1], unpack(archived))
  redis.call('HDEL', KEYS[2], unpack(archived))
  redis.call('HDEL', KEYS[3], unpack(archived))
end
if #completed > 0 then
  redis.call('ZREM', KEYS[4], unpack(completed))
  redis.call('HDEL', KEYS[5], unpack(completed))
end
return #archived + #completed - over
