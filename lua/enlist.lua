-- enlist: make tasks pending, or file them until they are due, unless another task holds their id or lock.
-- KEYS  1 pending list   2 notify list   3 scheduled set   4 retry set   5 parked set   6 tasks hash   7 info hash
--       8 completed set   9 locks hash   10 revoked set   11 wake list   12 control hash
-- ARGV  1 channel of the queue's workers, which ends in 'signals'. With 'ended:' and a task's id in place of 'signals'
--       it is the channel on which the end of a replaced task is published, if that was not pending yet
--       2 ms that a replaced task stays revoked
--       then for each task, at most 200: id, message, ms to keep the id taken after the due time or 0, lock or '',
--       ms to keep the lock after the due time, 'fail', 'skip' or 'replace',
--       ms since 1970 when it is due or '+' and ms from now or 'back' or 'front'
-- Returns {1, for each task '' or the id of the existing task that stands instead}, or {0, position from 0 of the first
--       refused task, id of the task that holds its id or lock} with nothing written.
-- O(n log m). A full Redis refuses it as a whole. '+' is measured by the server's clock.
--#include number
--#include clock
local function ahead(score) return score and number(score) > now end

-- Read everything before the first write, which also finds keys of another type.
local names, asked, ids, others = {}, 0, {}, {}
for i = 3, #ARGV, 7 do
  if ARGV[i + 2] ~= '0' then
    asked = asked + 1
    names[asked] = '#' .. ARGV[i]
    ids[#ids + 1] = ARGV[i]
  end
  if ARGV[i + 3] ~= '' then
    asked = asked + 1
    names[asked] = ARGV[i + 3]
  end
end
-- Who holds what; which ids completed tasks have, and which are revoked.
local holders, taken, revocations = {}, {}, {}
if asked > 0 then
  local by = redis.call('HMGET', KEYS[9], unpack(names))
  for i = 1, asked do
    local expiry, id = string.match(by[i] or '', '^(%d+) (.*)$')
    if expiry and tonumber(expiry) > now then
      holders[names[i]] = id
      if string.sub(names[i], 1, 1) ~= '#' then others[#others + 1] = id end
    end
  end
end
-- A canceled task holds no lock, although the lock is there until the task ends.
local canceled = {}
if #others > 0 then
  local revoked = redis.call('ZMSCORE', KEYS[10], unpack(others))
  for i = 1, #others do canceled[others[i]] = revoked[i] end
end
if #ids > 0 then
  local completed, revoked = redis.call('ZMSCORE', KEYS[8], unpack(ids)), redis.call('ZMSCORE', KEYS[10], unpack(ids))
  for i = 1, #ids do taken[ids[i]], revocations[ids[i]] = ahead(completed[i]), revoked[i] end
end
-- Times as text, because Redis writes each number with 17 digits, which takes longer than all the rest.
local at, times = {}, {}
local reply, owners, places, stands, dues, replaced, pardoned = {1}, {}, {}, {}, {}, {}, {}
for i = 3, #ARGV, 7 do
  local n, id, lock, rule, place = (i + 4) / 7, ARGV[i], ARGV[i + 3], ARGV[i + 5], ARGV[i + 6]
  if not times[place] and place ~= 'back' and place ~= 'front' then
    at[place], times[place] = tonumber(place), place
    if string.sub(place, 1, 1) == '+' then
      at[place] = now + tonumber(string.sub(place, 2))
      times[place] = string.format('%.0f', at[place])
    end
  end
  local due = at[place]
  local other = false
  if places[id] or ARGV[i + 2] ~= '0' and (holders['#' .. id] or taken[id]
      or redis.call('HEXISTS', KEYS[6], id) == 1) then
    other = id
  elseif lock ~= '' then
    other = owners[lock] or not canceled[holders[lock]] and holders[lock]
    if other and rule == 'replace' then
      -- One of this call that would be filed is left out. One that would be pending is revoked, and not left out: who
      -- waits for it learns of its end from the worker.
      if places[other] and dues[places[other]] then
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
    owners[lock], places[id], stands[n], dues[n] = id, n, true, due
    -- The revocation was meant for an older task of this id, which has ended.
    if revocations[id] then pardoned[#pardoned + 1] = id end
  end
end
local gone, revoked, revokes = {}, {}, {}
local scheduled, retrying, parked, rest = {}, {}, {}, {}
if #replaced > 0 then
  local scores = redis.call('ZMSCORE', KEYS[3], unpack(replaced))
  for i = 1, #replaced do
    if scores[i] then
      scheduled[#scheduled + 1], gone[#gone + 1] = replaced[i], replaced[i]
    else
      rest[#rest + 1] = replaced[i]
    end
  end
end
if #rest > 0 then
  local retries, parks = redis.call('ZMSCORE', KEYS[4], unpack(rest)), redis.call('ZMSCORE', KEYS[5], unpack(rest))
  for i = 1, #rest do
    local id = rest[i]
    if retries[i] then retrying[#retrying + 1] = id end
    if parks[i] then parked[#parked + 1] = id end
    if retries[i] or parks[i] then
      gone[#gone + 1] = id
    else
      revoked[#revoked + 1], revoked[#revoked + 2] = now + tonumber(ARGV[2]), id
      revokes[id] = true
    end
  end
end
local version = tonumber(#replaced > 0 and redis.call('HGET', KEYS[12], 'version') or 0) or 0

local back, front, ones, tasks, scores = {}, {}, {}, {}, {}
local pending, filed, earliest = 0, 0, false
for i = 3, #ARGV, 7 do
  local n = (i + 4) / 7
  local due = dues[n]
  if stands[n] and due then
    filed = filed + 2
    tasks[filed - 1], tasks[filed] = ARGV[i], ARGV[i + 1]
    scores[filed - 1], scores[filed] = times[ARGV[i + 6]], ARGV[i]
    earliest = math.min(earliest or due, due)
  elseif stands[n] then
    pending = pending + 1
    ones[pending] = '1'
    if ARGV[i + 6] == 'front' then front[#front + 1] = ARGV[i + 1] else back[#back + 1] = ARGV[i + 1] end
  end
end
if pending + filed == 0 then return reply end
if pending > 0 then redis.call('LLEN', KEYS[1]) end
local wake = false
if filed > 0 then
  local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  wake = redis.call('LLEN', KEYS[11]) == 0 and (not first[2] or earliest < number(first[2]))
end
if filed + #gone > 0 then redis.call('HLEN', KEYS[6]) end
local informed = #gone > 0 and redis.call('HLEN', KEYS[7]) > 0
if #revoked > 0 then redis.call('ZSCORE', KEYS[10], '') end
if pending > 0 then
  redis.call('RPUSH', KEYS[2], unpack(ones))
  for i = #front, 1, -1 do redis.call('LPUSH', KEYS[1], front[i]) end
  if #back > 0 then redis.call('RPUSH', KEYS[1], unpack(back)) end
end
if filed > 0 then
  redis.call('HSET', KEYS[6], unpack(tasks))
  redis.call('ZADD', KEYS[3], unpack(scores))
  if wake then redis.call('RPUSH', KEYS[11], '1') end
end

-- When what lasts so long after the due time of a place expires.
local ends = {}
local function lapse(place, life)
  local own = ends[place]
  if not own then
    own = {}
    ends[place] = own
  end
  if not own[life] then own[life] = string.format('%.0f ', math.max(now, at[place] or now) + tonumber(life)) end
  return own[life]
end
local fields, last = {}, 0
for i = 3, #ARGV, 7 do
  local n = (i + 4) / 7
  if stands[n] then
    local id, lock, place = ARGV[i], ARGV[i + 3], ARGV[i + 6]
    if ARGV[i + 2] ~= '0' then
      last = last + 2
      fields[last - 1], fields[last] = '#' .. id, lapse(place, ARGV[i + 2]) .. id
    end
    if lock ~= '' then
      last = last + 2
      fields[last - 1], fields[last] = lock, lapse(place, ARGV[i + 4]) .. id
    end
  end
end
if last > 0 then redis.call('HSET', KEYS[9], unpack(fields)) end
-- Touch each key that may become empty only once: while a slot moves, a second command on it fails.
if #gone > 0 then
  if #scheduled > 0 then redis.call('ZREM', KEYS[3], unpack(scheduled)) end
  if #retrying > 0 then redis.call('ZREM', KEYS[4], unpack(retrying)) end
  if #parked > 0 then redis.call('ZREM', KEYS[5], unpack(parked)) end
  redis.call('HDEL', KEYS[6], unpack(gone))
  if informed then redis.call('HDEL', KEYS[7], unpack(gone)) end
  local ended = (string.match(ARGV[1], '^(.*)signals$') or '') .. 'ended:'
  for i = 1, #gone do redis.call('PUBLISH', ended .. gone[i], 'replaced') end
end
if #revoked > 0 then
  redis.call('ZADD', KEYS[10], unpack(revoked))
  redis.call('HSET', KEYS[12], 'version', string.format('%.0f', math.max(now, version + 1)))
  for i = 2, #revoked, 2 do redis.call('PUBLISH', ARGV[1], 'cancel ' .. revoked[i]) end
end
local forgotten = {}
for i = 1, #pardoned do
  if not revokes[pardoned[i]] then forgotten[#forgotten + 1] = pardoned[i] end
end
if #forgotten > 0 then redis.call('ZREM', KEYS[10], unpack(forgotten)) end
local freed = {}
for i = 1, #gone do freed[i] = '#' .. gone[i] end
if #freed > 0 then redis.call('HDEL', KEYS[9], unpack(freed)) end
return reply
