-- audit: note what somebody has done.
-- KEYS  1 audit list
-- ARGV  1 entry   2 most entries
-- Returns the number of entries.
-- O(1). Works on a full Redis: its first write is an LTRIM.
redis.call('LTRIM', KEYS[1], 0, ARGV[2] - 2)
return redis.call('LPUSH', KEYS[1], ARGV[1])
