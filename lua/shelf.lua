-- shelf: read a page of a sorted set, in its order or against it, behind the place of a member.
-- KEYS  1 the sorted or completed set
-- ARGV  1 score of that member, '' to begin at the end   2 the member, which need not be there any more
--       3 most members, at most 1,000   4 1 against the order
-- Returns of each member of the page: member, score.
-- O(log² n + page). Reads only.
local most, back = tonumber(ARGV[3]), ARGV[4] == '1'
local from = back and redis.call('ZCARD', KEYS[1]) - 1 or 0
-- Whether a stands before b where scores are equal: Redis compares bytes, Lua as its locale says.
local function before(a, b)
  -- How many bytes are the same at the beginning, by halving.
  local same, most = 0, math.min(#a, #b)
  for _ = 1, 64 do
    if same >= most then break end
    local n = math.ceil((same + most) / 2)
    if string.sub(a, same + 1, n) == string.sub(b, same + 1, n) then same = n else most = n - 1 end
  end
  local x, y = string.byte(a, same + 1), string.byte(b, same + 1)
  return y and (not x or x < y)
end
if ARGV[1] ~= '' then
  -- Members of the same score that stand before the member, by halving.
  local low = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[1])
  local high = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1])
  local there = false
  for _ = 1, 64 do
    if low >= high then break end
    local middle = math.floor((low + high) / 2)
    local member = redis.call('ZRANGE', KEYS[1], middle, middle)[1]
    if member == ARGV[2] then
      low, there = middle, true
      break
    elseif before(member, ARGV[2]) then
      low = middle + 1
    else
      high = middle
    end
  end
  from = back and low - 1 or low + (there and 1 or 0)
end
local reply, first, last = {}, from, from + most - 1
if back then first, last = math.max(from - most + 1, 0), from end
if last < 0 then return reply end
local some = redis.call('ZRANGE', KEYS[1], first, math.min(last, first + 999), 'WITHSCORES')
for i = 1, math.min(#some, 2000), 2 do
  local j = back and #some - i or i
  reply[i], reply[i + 1] = some[j], some[j + 1]
end
return reply
