-- reform: replace the form of Python tasks on a queue that holds no task.
-- KEYS  1 mode   2 pending list   3 scheduled set   4 retry set   5 parked set   6 archived set
--       7 legacy processing hash   8 periodic hash   9 suspects list
-- ARGV  1 form that was found   2 form to settle instead
-- Returns the form that holds: the new one, unless the queue's form is no longer the one found, or one of these keys
--       holds something. The caller has checked before that no task is active.
-- O(1). A full Redis refuses it.
local form, holds = redis.call('GET', KEYS[1]), ARGV[2]
local n = redis.call('LLEN', KEYS[2]) + redis.call('ZCARD', KEYS[3]) + redis.call('ZCARD', KEYS[4])
n = n + redis.call('ZCARD', KEYS[5]) + redis.call('ZCARD', KEYS[6]) + redis.call('HLEN', KEYS[7])
n = n + redis.call('LLEN', KEYS[9])
-- What stands beside the entries, such as the stamp of a declaration, has a name that begins with @.
local entries = redis.call('HLEN', KEYS[8])
if entries > 0 and entries <= 100 then
  local names = redis.call('HKEYS', KEYS[8])
  for i = 1, 100 do
    if names[i] and string.sub(names[i], 1, 1) == '@' then entries = entries - 1 end
  end
end
n = n + entries
if form and (form ~= ARGV[1] or n > 0) then holds = form end
redis.call('SET', KEYS[1], holds)
return holds
