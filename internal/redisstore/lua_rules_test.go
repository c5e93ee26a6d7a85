package redisstore

import (
	"strings"
	"testing"
)

// goodLua is a script that breaks no rule.
const goodLua = `-- good: take tasks.
-- KEYS  1 pending list   2 tasks hash   3 notify list
-- ARGV  1 most tasks   2 life, s
--       then for each task, at most 100: id, message
-- Returns the number of tasks.
-- O(n). Works on a full Redis: its first write is an LPOP.
local most = tonumber(ARGV[1])
local left = redis.call('LLEN', KEYS[1])
local n = math.min(left, most)
for i = 1, n do
  local message = redis.call('LPOP', KEYS[1])
  if not message then break end
end
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
redis.call('EXPIRE', KEYS[3], ARGV[2])
return n -- not nil == nil
`

// goodEach is a script that takes several queues.
const goodEach = `-- each: look at queues.
-- KEYS  for each queue: pending list, notify list, tasks hash
-- ARGV  none
-- Returns the numbers of pending tasks.
-- O(queues). Reads only.
local reply = {}
for i = 1, #KEYS, 3 do
  for j = i, i + 1 do reply[#reply + 1] = redis.call('LLEN', KEYS[j]) end
  reply[#reply + 1] = redis.call('HLEN', KEYS[i + 2])
end
return reply
`

// TestScriptRulesCanFail puts faults into good scripts, one at a time.
func TestScriptRulesCanFail(t *testing.T) {
	good, each := "good", "each"
	for _, c := range []struct {
		name     string
		old, new string // what is replaced, and by what
		want     string // part of a problem
	}{
		{name: good},
		{name: each},
		// Header.
		{good, "-- good:", "-- better:", `its header names it "better"`},
		{good, "-- good: take tasks.", "-- good", `expected "-- name: what it does."`},
		{good, "-- Returns the number of tasks.\n", "", "header has"},
		{good, "-- Returns the number of tasks.\n", "-- Gives the number of tasks.\n", "header line"},
		{good, "-- O(n). Works", "-- Works", "header line"},
		{good, "2 tasks hash", "4 tasks hash", "numbered from 1"},
		{good, "   3 notify list", "", "keys [3] are used"},
		{good, "1 most tasks   2 life", "1 most tasks   3 life", "numbered from 1"},
		{each, "for each queue: pending list, notify list", "for each queue: pending list", "expected from 1 by 2"},
		{
			each, "for each queue: pending list, notify list, tasks hash",
			"1 pending list   2 notify list   3 tasks hash",
			"expected a number",
		},
		// Keys.
		{good, "redis.call('EXPIRE', KEYS[3], ARGV[2])", "tonumber(ARGV[2])", "key 3 of the header is not used"},
		{good, "'LPOP', KEYS[1]", "'LPOP', KEYS[4]", "keys [4] are used"},
		{good, "'LPOP', KEYS[1]", "'LPOP', KEYS[1] .. '_noti'", "KEYS[1] .. '_noti': expected one of KEYS"},
		{good, "'LPOP', KEYS[1]", "'LPOP', 'mail'", "'mail': expected one of KEYS"},
		{good, "'LPOP', KEYS[1]", "'LPOP', ARGV[1]", "ARGV[1]: expected one of KEYS"},
		{good, "'LLEN', KEYS[1]", "'EXISTS', KEYS[1], ARGV[1]", "ARGV[1]: expected one of KEYS"},
		{good, "local left", "local list = KEYS[1]\nlocal left", "only 4 times as the key of a command"},
		{good, "'LPOP', KEYS[1]", "'LPOP', KEYS[n]", "KEYS[n]: expected a number"},
		{each, "#KEYS, 3", "#KEYS, 2", "expected from 1 by 3"},
		{each, "KEYS[i + 2]", "KEYS[i + 3]", "key 3 of the header is not used"},
		{each, "for j = i, i + 1", "for j = i, i", "key 2 of the header is not used"},
		// Arguments.
		{good, "tonumber(ARGV[1])", "10", "argument 1 of the header is not used"},
		{good, "tonumber(ARGV[1])", "tonumber(ARGV[1]) + ARGV[9]", "arguments [9] are used"},
		{good, "for i = 3, #ARGV, 2", "for i = 4, #ARGV, 2", "arguments from 3 on are in the header, but not used"},
		{good, "for i = 3, #ARGV, 2", "for i = 3, #ARGV, 3", "groups of 2"},
		{good, "ARGV[i], ARGV[i + 1]", "ARGV[i], ARGV[i]", "number 2 of each group of arguments is not used"},
		{good, "ARGV[i], ARGV[i + 1]", "ARGV[i + 1], ARGV[i + 2]", "beyond them"},
		{good, "id, message\n", "id, message, info\n", "groups of 3"},
		{good, "then for each task, at most 100: ", "then for each task: ", `"at most n"`},
		{good, "at most 100", "at most 2,501", `"at most n"`},
		// Words.
		{good, "tonumber(", "cmsgpack.unpack(", "cmsgpack is neither"},
		{good, "tonumber(", "struct.unpack(", "struct is neither"},
		{good, "tonumber(", "bit.tobit(", "bit is neither"},
		{good, "tonumber(", "cjson.decode(", "cjson is neither"},
		{good, "tonumber(", "os.time(", "os is neither"},
		{good, "tonumber(", "print(", "print is neither"},
		{good, "return n", "goto out", "goto is neither"},
		{good, "if not message then break end", "while message do break end", "while is neither"},
		{good, "if not message then break end", "repeat message = nil until not message", "repeat is neither"},
		{good, "for i = 1, n do", "for i, n in pairs(ARGV) do", "expected for i = first, last"},
		{good, "for i = 1, n do", "for i, n in pairs(ARGV) do", "pairs is neither"},
		{good, "local most", "most", "most is neither"},
		{good, "math.min", "math.random", "math.random: expected"},
		{good, "return n", "return n:len()", "method call"},
		{good, "redis.call('LLEN'", "redis.pcall('LLEN'", "redis.pcall: expected"},
		{good, "local left", "local call = redis.call\nlocal left", "other than by redis.call"},
		{good, "'LLEN'", "'llen'", "upper case"},
		{good, "'LLEN'", "command", "upper case"},
		{good, "if not message", "if message == nil", "comparison with nil"},
		{good, "if not message", "if message ~= nil", "comparison with nil"},
		{good, "if not message", "if nil == message", "comparison with nil"},
		{good, "return n", "return [[n]]", "long brackets"},
		// Bounds.
		{good, "math.min(left, most)", "left", "n is as large as the data"},
		{good, "for i = 1, n", "for i = 1, left - 1", "left is as large as the data"},
		{good, "for i = 1, n", "for i = 1, redis.call('LLEN', KEYS[1])", "ends where the data does"},
		{
			good, "math.min(left, most)",
			"most\nlocal all = redis.call('HKEYS', KEYS[2])\nredis.call('HDEL', KEYS[2], unpack(all))",
			"unpack(all): it is as long as the data",
		},
		{
			good, "math.min(left, most)",
			"most\nlocal all = redis.call('LRANGE', KEYS[1], 0, -1)\nfor i = 1, #all do most = i end",
			"all is as large as the data",
		},
		{
			good, "math.min(left, most)",
			"most\nlocal all = redis.call('ZRANGEBYSCORE', KEYS[1], 0, 1)\nfor i = 1, #all do most = i end",
			"all is as large as the data",
		},
		{
			good, "math.min(left, most)",
			"most\nlocal all = redis.call('ZRANGEBYSCORE', KEYS[1], 0, 1, 'LIMIT', 0, ARGV[1])\nfor i = 1, #all do " +
				"most = i end", "",
		},
		{
			good, "math.min(left, most)",
			"most\nlocal all = redis.call('ZRANGE', KEYS[1], 0, left - 1)\nfor i = 1, #all do most = i end",
			"all is as large as the data",
		},
		// Writes.
		{good, "'LPOP'", "'RPUSH'", "the first write is RPUSH, which a full Redis refuses"},
		{good, "is an LPOP", "is an HDEL", "the first write is LPOP"},
		{good, "its first write is an LPOP", "it frees memory", "expected the header to say"},
		{good, "'LPOP'", "'FLUSHALL'", "FLUSHALL is not in the list"},
		{each, "'HLEN'", "'HDEL'", "expected the header to say"},
		{each, "Reads only.", "Cheap.", "Reads only"},
	} {
		text := goodLua
		if c.name == each {
			text = goodEach
		}
		if c.old != "" && strings.Count(text, c.old) != 1 {
			t.Errorf("planting %q: %d places, expected one", c.new, strings.Count(text, c.old))
		}
		s, problems := parseLua(c.name, strings.Replace(text, c.old, c.new, 1))
		got := strings.Join(append(problems, checkLua(s)...), "\n")
		switch {
		case c.want == "" && got != "":
			t.Errorf("%q in place of %q breaks no rule, found:\n%s", c.new, c.old, got)
		case !strings.Contains(got, c.want):
			t.Errorf("%q in place of %q: expected a problem with %q, found:\n%s", c.new, c.old, c.want, got)
		}
	}
}
