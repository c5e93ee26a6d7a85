-- locks: held(fields, ids, waits) returns which of the fields of the locks hash LOCKS tasks hold: fields 2n-1 and 2n
-- are the lock and the id of task n. If waits has how many ms longer each task waits, it also returns these fields with
-- values by which they last longer. A key of another type is an error at once, before the script writes anything.
local locks = redis.call('HLEN', LOCKS)
local function held(fields, ids, waits)
  local own, later = {}, {}
  if #ids == 0 or locks == 0 then return own, later end
  local values = redis.call('HMGET', LOCKS, unpack(fields))
  for i = 1, #fields do
    local n = math.ceil(i / 2)
    local expiry, id = string.match(values[i] or '', '^(%d+) (.*)$')
    if id == ids[n] then
      own[#own + 1] = fields[i]
      if waits then
        later[#later + 1], later[#later + 2] = fields[i], string.format('%.0f', expiry + waits[n]) .. ' ' .. id
      end
    end
  end
  return own, later
end
