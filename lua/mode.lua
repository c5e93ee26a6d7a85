-- mode: settle which form Python tasks have on a queue.
-- KEYS  1 mode
-- ARGV  1 'plain' or 'extended'
-- Returns the form of the queue: that of the first call, until reform replaces it.
-- O(1). A full Redis refuses it.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
