-- clock: now is the time of the server, in ms since 1970; time is the same as TIME returns it.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
