-- enlist: make tasks pending, or file them until they are due, unless another task holds their id or lock.
-- KEYS  1 pending list   2 notify list   3 scheduled set   4 retry set   5 parked set   6 tasks hash   7 info hash
--       8 completed set   9 locks hash   10 locked set   11 revoked set   12 wake list   13 control hash
-- ARGV  1 'back', 'front', 'in' or 'at'   2 ms from now or since 1970, for 'in' and 'at'
--       3 channel of the queue's workers, which ends in 'signals'. With 'ended:' and a task's id in place of 'signals'
--       it is the channel on which the end of a replaced task is published, if that was not pending yet
--       4 ms that a replaced task stays revoked   5 most expired locks to drop, at most 500
--       then for each task, at most 200: id, message, ms to keep the id taken after the due time or 0, lock or '',
--       ms to keep the lock after the due time, 'fail', 'skip' or 'replace'
-- Returns {1, for each task '' or the id of the existing task that stands instead}, or {0, position from 0 of the first
--       refused task, id of the task that holds its id or lock} with nothing written.
-- O(n log m). A full Redis refuses it as a whole. 'in' is measured by the server's clock.
local function number(score)
  -- A server may write a round number as 4e+12, which not every Lua can read.
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local pending = ARGV[1] == 'back' or ARGV[1] == 'front'
local due = pending and now or tonumber(ARGV[2])
if ARGV[1] == 'in' then due = due + now end
local from = math.max(now, due)
local function ahead(score) return score and number(score) > now end
local function held(name) return ahead(redis.call('ZSCORE', KEYS[10], name)) end

-- Read everything before the first write, which also finds keys of another type.
redis.call('HLEN', KEYS[9])
local reply, owners, places, stands, replaced, pardoned = {1}, {}, {}, {}, {}, {}
for i = 6, #ARGV, 6 do
  local n, id, lock, rule = i / 6, ARGV[i], ARGV[i + 3], ARGV[i + 5]
  local other = false
  if places[id] or ARGV[i + 2] ~= '0' and (held('#' .. id) or redis.call('HEXISTS', KEYS[6], id) == 1
      or ahead(redis.call('ZSCORE', KEYS[8], id))) then
    other = id
  elseif lock ~= '' then
    if not owners[lock] and held(lock) then owners[lock] = redis.call('HGET', KEYS[9], lock) end
    other = owners[lock]
    if other and rule == 'replace' then
      if places[other] then
        stands[places[other]] = false
      else
        replaced[#replaced + 1] = other
      end
      other = false
    end
  end
  if other and rule ~= 'skip' then return {0, n - 1, other} end
  reply[n + 1] = other or ''
  if not other then
    owners[lock], places[id], stands[n] = id, n, true
    -- The revocation was meant for an older task of this id, which has ended.
    if ARGV[i + 2] ~= '0' and redis.call('ZSCORE', KEYS[11], id) then pardoned[#pardoned + 1] = id end
  end
end
local gone, revoked = {}, {}
for i = 1, #replaced do
  local id = replaced[i]
  local scheduled, retrying = redis.call('ZSCORE', KEYS[3], id), redis.call('ZSCORE', KEYS[4], id)
  if redis.call('ZSCORE', KEYS[5], id) or retrying or scheduled then
    gone[#gone + 1] = id
  else
    revoked[#revoked + 1], revoked[#revoked + 2] = now + tonumber(ARGV[4]), id
  end
end
local version = tonumber(#replaced > 0 and redis.call('HGET', KEYS[13], 'version') or 0) or 0
local expired = redis.call('ZRANGEBYSCORE', KEYS[10], '-inf', now, 'LIMIT', 0, ARGV[5])
local first = not pending and redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES') or {}

local messages, ones, tasks, dues = {}, {}, {}, {}
for i = 6, #ARGV, 6 do
  if stands[i / 6] then
    local n = #messages + 1
    messages[n], ones[n] = ARGV[i + 1], '1'
    tasks[2 * n - 1], tasks[2 * n] = ARGV[i], ARGV[i + 1]
    dues[2 * n - 1], dues[2 * n] = due, ARGV[i]
  end
end
if #messages == 0 then return reply end
if pending then
  redis.call('LLEN', KEYS[1])
else
  redis.call('HLEN', KEYS[6])
end
local woken = pending or redis.call('LLEN', KEYS[12]) > 0
if #gone > 0 then
  redis.call('HLEN', KEYS[6])
  redis.call('HLEN', KEYS[7])
end
if #revoked > 0 then redis.call('ZSCORE', KEYS[11], '') end
if pending then
  redis.call('RPUSH', KEYS[2], unpack(ones))
  if ARGV[1] == 'front' then
    for i = #messages, 1, -1 do redis.call('LPUSH', KEYS[1], messages[i]) end
  else
    redis.call('RPUSH', KEYS[1], unpack(messages))
  end
else
  redis.call('HSET', KEYS[6], unpack(tasks))
  redis.call('ZADD', KEYS[3], unpack(dues))
  if not woken and (not first[2] or due < number(first[2])) then redis.call('RPUSH', KEYS[12], '1') end
end

local renewed, fields, lapses = {}, {}, {}
local function take(name, value, life)
  local n = #fields
  fields[n + 1], fields[n + 2] = name, value
  lapses[n + 1], lapses[n + 2] = from + life, name
  renewed[name] = true
end
for i = 6, #ARGV, 6 do
  if stands[i / 6] then
    local id, lock = ARGV[i], ARGV[i + 3]
    local reserve, life = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 4])
    if reserve > 0 then take('#' .. id, id, reserve) end
    if lock ~= '' then
      take(lock, id, life)
      take('@' .. id, lock, life)
    end
  end
end
if #fields > 0 then
  redis.call('HSET', KEYS[9], unpack(fields))
  redis.call('ZADD', KEYS[10], unpack(lapses))
end
-- Touch each key that may become empty only once: while a slot moves, a second command on it fails.
if #gone > 0 then
  redis.call('ZREM', KEYS[3], unpack(gone))
  redis.call('ZREM', KEYS[4], unpack(gone))
  redis.call('ZREM', KEYS[5], unpack(gone))
  redis.call('HDEL', KEYS[6], unpack(gone))
  redis.call('HDEL', KEYS[7], unpack(gone))
  local ended = (string.match(ARGV[3], '^(.*)signals$') or '') .. 'ended:'
  for i = 1, #gone do redis.call('PUBLISH', ended .. gone[i], 'replaced') end
end
if #revoked > 0 then
  redis.call('ZADD', KEYS[11], unpack(revoked))
  redis.call('HSET', KEYS[13], 'version', string.format('%.0f', math.max(now, version + 1)))
  for i = 2, #revoked, 2 do redis.call('PUBLISH', ARGV[3], 'cancel ' .. revoked[i]) end
end
if #pardoned > 0 then redis.call('ZREM', KEYS[11], unpack(pardoned)) end
local freed = {}
for i = 1, #gone do freed[2 * i - 1], freed[2 * i] = '@' .. gone[i], '#' .. gone[i] end
for i = 1, #expired do
  if not renewed[expired[i]] then freed[#freed + 1] = expired[i] end
end
if #freed > 0 then
  redis.call('HDEL', KEYS[9], unpack(freed))
  redis.call('ZREM', KEYS[10], unpack(freed))
end
return reply
