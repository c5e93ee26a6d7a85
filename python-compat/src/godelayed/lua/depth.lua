-- depth: note how many tasks are pending on queues of one slot, once in ten seconds.
-- KEYS  for each queue: depths hash, pending list, suspects list, control hash
-- ARGV  1 time by the server's clock, s since 1970   2 life of the depths hash, s
-- Returns for each queue how many, or -1 if somebody has noted it for these ten seconds.
-- O(queues). A full Redis refuses it. Three commands for a queue that is empty.
local now = tonumber(ARGV[1])
-- Of each grain: its mark, how many seconds a depth stands for, how many depths a field has, and how many fields.
local rings = {{'s', 10, 90, 5}, {'m', 60, 120, 13}, {'d', 86400, 45, 3}}
local fields, numbers, places = {}, {}, {}
for j = 1, 3 do
  local ring, step = rings[j], math.floor(now / rings[j][2])
  numbers[j], places[j] = math.floor(step / ring[3]), step % ring[3]
  fields[j] = ring[1] .. numbers[j] % ring[4]
end
-- What a field holds of the present round, and for how many steps; '' and 0 if it is of an earlier round.
local function held(j, text)
  local number, list = string.match(text or '', '^(%d+):(.*)$')
  if not number or tonumber(number) ~= numbers[j] then return '', 0 end
  local _, commas = string.gsub(list, ',', ',')
  return text, commas + 1
end
-- The field with the depth of the present step; false if it already has one that is not smaller.
local function noted(j, text, depth)
  local known, steps = held(j, text)
  local word, skipped = depth > 0 and string.format('%d', depth) or '', places[j] - steps
  if known == '' then return string.format('%d', numbers[j]) .. ':' .. string.rep('-,', places[j]) .. word end
  if skipped >= 0 then return known .. string.rep(',-', skipped) .. ',' .. word end
  local before, last = string.match(known, '^(.*[,:])([^,]*)$')
  return skipped == -1 and depth > (tonumber(last) or 0) and before .. word
end
local reply, news = {}, {}
for i = 1, #KEYS, 4 do
  local texts, depth = redis.call('HMGET', KEYS[i], fields[1], fields[2], fields[3]), 0
  local _, steps = held(1, texts[1])
  local args = {}
  reply[#reply + 1] = -1
  if steps <= places[1] then
    if redis.call('EXISTS', KEYS[i + 1], KEYS[i + 2]) > 0 then
      local gaps = tonumber(redis.call('HGET', KEYS[i + 3], 'gaps') or 0) or 0
      depth = math.max(redis.call('LLEN', KEYS[i + 1]) + redis.call('LLEN', KEYS[i + 2]) - gaps, 0)
    end
    reply[#reply] = depth
    for j = 1, 3 do
      local text = noted(j, texts[j], depth)
      if text then args[#args + 1], args[#args + 2] = fields[j], text end
    end
  end
  news[i] = args
end
for i = 1, #KEYS, 4 do
  local args = news[i]
  if #args > 0 then redis.call('HSET', KEYS[i], unpack(args)) end
  if #args > 2 then redis.call('EXPIRE', KEYS[i], ARGV[2]) end
end
return reply
