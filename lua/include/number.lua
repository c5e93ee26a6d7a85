-- number: number(score) reads a score. A server may write a round one as 4e+12, which not every Lua can read.
local function number(score)
  local digits, zeros = string.match(score, '^([%d.]+)e%+?(%d+)$')
  if not digits then return tonumber(score) end
  return math.floor(tonumber(digits) * 10 ^ tonumber(zeros) + 0.5)
end
