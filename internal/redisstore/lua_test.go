package redisstore

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/lua"
)

// What scripts call, all of which Redis 6.2 has: commands that read, that write although Redis is full, and that a full
// Redis refuses.
var (
	luaReads = strings.Fields(`EXISTS GET HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD HSCAN HSTRLEN LINDEX LLEN
		LRANGE PTTL PUBLISH SISMEMBER SMEMBERS SSCAN TIME TYPE ZCARD ZCOUNT ZMSCORE ZRANGE ZRANGEBYSCORE ZSCORE`)
	luaFrees = strings.Fields(`EXPIRE HDEL LPOP LREM LTRIM PEXPIRE RPOP SREM UNLINK ZREM`)
	luaGrows = strings.Fields(`HINCRBY HSET LPUSH LSET RPUSH SADD SET ZADD`)
)

// luaScript is a script with its includes: what its header says, and what it calls.
type luaScript struct {
	about string
	keys  []string // what each of KEYS is, in order
	each  bool     // whether the keys repeat, for each queue, worker or group
	most  int      // how many groups of arguments there may be, 0 if the header does not say
	cost  string
	code  string // without comments
	calls []luaCall
}

// luaCall is one redis.call.
type luaCall struct {
	command string
	keys    []int  // numbers of its keys, from 1
	rest    string // what follows the keys, up to the first parenthesis
}

var (
	luaHeader = regexp.MustCompile(
		`^-- (\w+): (.+)\n-- KEYS  (.+)\n-- ARGV  (.+)\n-- Returns .+\n-- (O\([^)]*\)\. .+)\n`)
	luaEach   = regexp.MustCompile(`^for each (?:queue|worker|group): `)
	luaNumber = regexp.MustCompile(`(?:^|   )(\d+) `)
	luaMost   = regexp.MustCompile(`at most ([\d,]+)`)
	luaNotes  = regexp.MustCompile(`--.*`)
	luaKey    = regexp.MustCompile(`\bKEYS\[(?:[a-z]( \+ )?)?(\d*)\]`)
	luaCalls  = regexp.MustCompile(`redis\.call\('([A-Z]+)'((?:, KEYS\[[^]]+\])*)([^()\n]*)`)
	// luaForeign is what only some servers have, what may run for ever, and what has another order on another server.
	luaForeign = regexp.MustCompile(`\b(?:cjson|cmsgpack|struct|bit|os|print|goto|while|repeat|pairs|pcall|KEYS =)\b`)
)

// parseLua reads a script.
func parseLua(name, text string) (s luaScript, err error) {
	m := luaHeader.FindStringSubmatch(strings.ReplaceAll(text, "\n--       ", "   "))
	if m == nil || m[1] != name {
		return s, fmt.Errorf(
			`lua/%s.lua: expected the header "-- %[1]s: what it does.", KEYS, ARGV, Returns, O(…)`, name)
	}
	s.about, s.cost, s.code = m[2], m[5], luaNotes.ReplaceAllString(text, "")
	if each := luaEach.FindString(m[3]); each != "" {
		s.each = true
		for key := range strings.SplitSeq(m[3][len(each):], ",") {
			s.keys = append(s.keys, strings.TrimSpace(key))
		}
	} else {
		for i, key := range luaNumber.Split(m[3], -1)[1:] {
			if n := luaNumber.FindAllStringSubmatch(m[3], -1)[i][1]; n != strconv.Itoa(i+1) {
				return s, fmt.Errorf("lua/%s.lua: expected key %d, found %s", name, i+1, n)
			}
			s.keys = append(s.keys, strings.TrimSpace(key))
		}
	}
	for _, most := range luaMost.FindAllStringSubmatch(m[4], -1) {
		n, _ := strconv.Atoi(strings.ReplaceAll(most[1], ",", ""))
		s.most = max(s.most, n)
	}
	for _, c := range luaCalls.FindAllStringSubmatch(s.code, -1) {
		call := luaCall{command: c[1], rest: c[3]}
		for _, key := range luaKey.FindAllStringSubmatch(c[2], -1) {
			n, _ := strconv.Atoi("0" + key[2])
			if s.each {
				n++ // KEYS[i] is the first key of a queue, KEYS[i + 1] the second
			}
			call.keys = append(call.keys, n)
		}
		s.calls = append(s.calls, call)
	}
	return s, nil
}

// scriptTexts are the scripts as the store sends them, by name; those that cannot be read have no keys.
var scriptTexts = sync.OnceValue(func() map[string]luaScript {
	all := map[string]luaScript{}
	for name, row := range Scripts {
		all[name], _ = parseLua(name, row.Source) // TestScripts reports the error
	}
	return all
})

// TestScripts compares each script with its header. Tests of the store show the rest on servers: that no script needs
// more than Redis 6.2 has, works on keys of another slot, or takes long.
func TestScripts(t *testing.T) {
	for _, name := range lua.Names() {
		t.Run(name, func(t *testing.T) {
			if Scripts[name] == nil {
				t.Fatalf("lua/%s.lua is not in the table of scripts", name)
			}
			s, err := parseLua(name, lua.Source(name))
			if err != nil {
				t.Fatal(err)
			}
			if word := luaForeign.FindString(s.code); word != "" {
				t.Errorf("it has the word %s", word)
			}
			s.checkKeys(t)
			s.checkWrites(t)
		})
	}
}

// checkKeys compares the keys of the header with those of the calls.
func (s *luaScript) checkKeys(t *testing.T) {
	t.Helper()
	called := make([]bool, len(s.keys)+1)
	inCalls := 0
	for _, c := range s.calls {
		for _, k := range c.keys {
			if k >= len(called) {
				t.Fatalf("%s has key %d, which is not in the header", c.command, k)
			}
			called[k] = true
		}
		if len(c.keys) == 0 && c.command != "TIME" && c.command != "PUBLISH" {
			t.Errorf("%s%s: expected one of KEYS behind the command", c.command, c.rest)
		}
		inCalls += len(c.keys)
	}
	if i := slices.Index(called[1:], false); i >= 0 {
		t.Errorf("key %d of the header is not used", i+1)
	}
	if all := strings.Count(s.code, "KEYS["); all != inCalls {
		t.Errorf("KEYS is used %d times, but only %d times as the key of a command", all, inCalls)
	}
	if all := strings.Count(s.code, "redis."); all != len(s.calls) {
		t.Errorf("redis is used %d times, but only %d times to call a command by its name", all, len(s.calls))
	}
}

// checkWrites compares the first write with what the header says about a full Redis.
func (s *luaScript) checkWrites(t *testing.T) {
	t.Helper()
	want := "Reads only"
	for _, c := range slices.Backward(s.calls) {
		switch {
		case slices.Contains(luaFrees, c.command):
			want = `Works on a full Redis: .*\b` + c.command + `\b`
		case slices.Contains(luaGrows, c.command):
			want = "A full Redis refuses it"
		case !slices.Contains(luaReads, c.command):
			t.Errorf("%s is in no list of commands: add it if Redis 6.2 has it", c.command)
		}
	}
	if !regexp.MustCompile(want).MatchString(s.cost) {
		t.Errorf("expected the header to say %q, found %q", want, s.cost)
	}
}

// TestScriptLimits holds the limits that the headers state against those that Go keeps.
func TestScriptLimits(t *testing.T) {
	for _, limit := range []struct {
		script string
		sent   int
	}{
		{"enqueue", MaxBatchTasks},
		{"schedule", MaxFiled},
		{"enlist", MaxEnlisted},
		{"claim", maxClaim},
		{"gather", MaxFiled},
		{"ripe", MaxRipe},
		{"fire", MaxBatchTasks},
		{"join", MaxTokens},
		{"ack", MaxTokens},
		{"release", MaxTokens},
		{"shelve", MaxShelved},
		{"complete", MaxShelved},
		{"sweep", SweepPage},
		{"repair", RepairPage},
		{"move", MoveBatch},
		{"unpark", MaxUnparked},
		{"condemn", TrimPage},
		{"trim", TrimPage},
		{"agenda", AgendaPage},
		{"tick", schedule.MaxTicks + 2}, // a tick that has waited, and a line about missed ones
		{"expire", TrimPage},
		{"rerun", RerunPage},
		{"delete", RerunPage},
		{"lapse", LapsePage},
		{"cancel", PardonPage},
		{"pardon", PardonPage},
		{"roster", rosterMost},
	} {
		s := scriptTexts()[limit.script]
		if s.most == 0 || limit.sent > s.most {
			t.Errorf("%s: its header allows %d, Go sends up to %d", limit.script, s.most, limit.sent)
		}
	}
}
