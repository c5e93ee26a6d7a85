-- mark: note in a worker's claims hash what sweepers may conclude from its death.
-- KEYS  1 claims hash
-- ARGV  1 'alone' for the claim that runs with nothing else in hand, 'stopped' for a worker that stops in good order
--       2 the token of that claim, or '1'; '' to take the note back
-- Returns 1. A worker without claims needs no note, and none may outlast it: it is written only beside a batch.
-- O(1). Works on a full Redis: its first write is an HDEL.
local notes = redis.call('HEXISTS', KEYS[1], 'alone') + redis.call('HEXISTS', KEYS[1], 'stopped')
local batches = redis.call('HLEN', KEYS[1]) - notes
redis.call('HDEL', KEYS[1], ARGV[1])
if ARGV[2] ~= '' and batches > 0 then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1
