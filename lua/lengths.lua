-- lengths: read how long lists are.
-- KEYS  for each group: group list
-- ARGV  none
-- Returns their lengths.
-- O(lists). Reads only.
local reply = {}
for i = 1, #KEYS, 1 do reply[i] = redis.call('LLEN', KEYS[i]) end
return reply
