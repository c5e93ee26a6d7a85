-- copy: copy(id, token) returns another name for a task whose id is taken in the tasks hash TASKS: the first of id#2 to
-- id#10 that is free, or one that the token and the time make unique. taken has names that tasks will have.
local taken = {}
local function copy(id, token)
  for i = 2, 10 do
    local name = id .. '#' .. i
    if not taken[name] and redis.call('HEXISTS', TASKS, name) == 0 then return name end
  end
  return id .. '#' .. token .. '-' .. string.format('%.0f', now)
end
