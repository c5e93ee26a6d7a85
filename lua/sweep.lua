-- sweep: take claims from a dead worker, ours or a legacy one.
-- KEYS  1 key that exists while the worker lives   2 its processing hash   3 pending list   4 notify list
--       5 tasks hash   6 archived set   7 info hash   8 deaths hash   9 counters of the day   10 locks hash
--       11 completed set   12 results hash   13 revoked set
-- ARGV  1 life of the counters, s   2 life of the deaths hash, s   3 deaths alone at which a task is archived
--       4 ms that an archived task is kept   5 most archived tasks
--       then for each claim, last claimed first, at most 200: token, old message (its size if it is too large to be
--       read), new message ('' for the old one as it is), 'requeue', 'archive', 'count' or 'alone', id, info, key in
--       the deaths hash, channel on which to publish its end or '', lock or ''
-- Returns {tasks requeued, tasks archived}, or {-1, 0} when the worker lives. A claim stays if its message is not the
--       old one. Only deaths alone lead to the archive. A canceled task is requeued rather than archived: whoever
--       claims it ends it.
-- O(n log m). Works on a full Redis: its first write is an HDEL. 'count' and 'alone' are for messages that cannot carry
--       their deaths.
if redis.call('EXISTS', KEYS[1]) == 1 then return {-1, 0} end
--#include clock
local requeued, archived, ones, fields, ids, taken, channels = 0, 0, {}, {}, {}, {}, {}
-- Fail on keys of another type before anything is removed.
redis.call('LLEN', KEYS[3])
redis.call('LLEN', KEYS[4])
redis.call('HLEN', KEYS[5])
redis.call('ZCARD', KEYS[6])
redis.call('HLEN', KEYS[7])
redis.call('HLEN', KEYS[8])
redis.call('HLEN', KEYS[9])
--#include locks LOCKS=KEYS[10]
--#include copy TASKS=KEYS[5]
local canceled = redis.call('ZCARD', KEYS[13]) > 0
local reports = redis.call('HLEN', KEYS[12])
if reports > 0 then redis.call('ZCARD', KEYS[11]) end
for i = 6, #ARGV, 9 do
  local held, message = redis.call('HGET', KEYS[2], ARGV[i]), ARGV[i + 2]
  local same = held == ARGV[i + 1]
  if held and message == '' then
    same, message = same or #held == tonumber(ARGV[i + 1]), held
  end
  if same then
    redis.call('HDEL', KEYS[2], ARGV[i])
    taken[#taken + 1] = ARGV[i + 4]
    local verdict = ARGV[i + 3]
    if verdict == 'count' or verdict == 'alone' then
      local field, alone = ARGV[i + 6], ARGV[i + 6] .. ' alone'
      redis.call('HINCRBY', KEYS[8], field, 1)
      if verdict == 'alone' and redis.call('HINCRBY', KEYS[8], alone, 1) >= tonumber(ARGV[3]) then
        redis.call('HDEL', KEYS[8], field, alone)
        verdict = 'archive'
      else
        verdict = 'requeue'
      end
      redis.call('EXPIRE', KEYS[8], ARGV[2])
    end
    if canceled and redis.call('ZSCORE', KEYS[13], ARGV[i + 4]) then verdict = 'requeue' end
    if verdict == 'archive' then
      archived = archived + 1
      local id = ARGV[i + 4]
      if ARGV[i + 8] ~= '' then
        ids[#ids + 1] = id
        fields[#fields + 1], fields[#fields + 2] = ARGV[i + 8], '#' .. id
      end
      if redis.call('HEXISTS', KEYS[5], id) == 1 then id = copy(id, ARGV[i]) end
      redis.call('HSET', KEYS[5], id, message)
      redis.call('ZADD', KEYS[6], now + tonumber(ARGV[4]), id)
      redis.call('HSET', KEYS[7], id, ARGV[i + 5])
      if ARGV[i + 7] ~= '' then channels[#channels + 1] = ARGV[i + 7] end
    else
      requeued = requeued + 1
      redis.call('LPUSH', KEYS[3], message)
      ones[requeued] = '1'
    end
  end
end
if requeued > 0 then redis.call('RPUSH', KEYS[4], unpack(ones)) end
--#include count STATS=KEYS[9] LIFE=ARGV[1]
count('swept', requeued + archived)
count('archived', archived)
if archived > 0 then
  --#include trim SORTED=KEYS[6] TASKS=KEYS[5] INFO=KEYS[7] MOST=tonumber(ARGV[5])
end
local own = held(fields, ids)
if #own > 0 then redis.call('HDEL', KEYS[10], unpack(own)) end
-- Progress reports of these tasks are void. Results of older tasks of the same ids stay.
if reports > 0 then
  for i = 1, #taken do
    if not redis.call('ZSCORE', KEYS[11], taken[i]) then redis.call('HDEL', KEYS[12], taken[i]) end
  end
end
for i = 1, #channels do redis.call('PUBLISH', channels[i], 'ended') end
return {requeued, archived}
