package redisstore

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/lua"
)

var (
	luaKey     = regexp.MustCompile(`\bKEYS\[([^\]]*)\]`)
	luaArg     = regexp.MustCompile(`\bARGV\[([^\]]*)\]`)
	luaWord    = regexp.MustCompile(`[.:]?\s*[A-Za-z_]\w*`)
	luaLocal   = regexp.MustCompile(`\blocal\s+(?:function\s+)?(\w+(?:\s*,\s*\w+)*)`)
	luaParams  = regexp.MustCompile(`\bfunction\s*\w*\(([^)]*)\)`)
	luaAssign  = regexp.MustCompile(`(?m)(?:^|\blocal\s+|\bthen\s+|\bdo\s+)\s*(\w+(?:\s*,\s*\w+)*)\s*=\s*([^=].*)$`)
	luaNil     = regexp.MustCompile(`[=~]=\s*nil\b|\bnil\s*[=~]=`)
	luaUnpack  = regexp.MustCompile(`\bunpack\((\w+)\)`)
	luaIndex   = regexp.MustCompile(`^(\w+)(?:\s*\+\s*(\d+))?$`)
	firstWrite = regexp.MustCompile(
		`its first write is an? ([A-Z]+)(?:(?:, ([A-Z]+))? or ([A-Z]+))?\.| ([A-Z]+) is allowed\.`)
)

// luaKnown is the vocabulary of scripts besides their own local names: it has nothing that only some servers have
// (cmsgpack, struct, bit, os, print, goto), no loops except for, and nothing whose order differs between servers
// (pairs).
var luaKnown = strings.Fields(`and break do else elseif end false for function if local not or return then true nil
	redis KEYS ARGV tonumber unpack math string`)

// luaMembers are the members of these.
var luaMembers = strings.Fields(
	"redis.call math.floor math.ceil math.min math.max string.byte string.find string.format string.gsub " +
		"string.match string.rep string.sub")

// unboundedCommands return a size, or as many values as the data has.
var unboundedCommands = regexp.MustCompile(
	`'(LLEN|HLEN|ZCARD|SCARD|HKEYS|HVALS|HGETALL|SMEMBERS|LRANGE|ZRANGE|ZRANGEBYSCORE)'`)

// checkLua checks a script against the rules.
func checkLua(s *luaSource) []string {
	return slices.Concat(checkKeys(s), checkArgv(s), checkWords(s), checkBounds(s), checkWrites(s))
}

// checkKeys compares the keys of the header with those in use, and checks that commands get no others.
func checkKeys(s *luaSource) (problems []string) {
	used := map[int]bool{}
	inPlace := 0
	for _, c := range s.calls {
		for _, arg := range keyArgs(c) {
			if m := luaKey.FindString(arg); m != arg {
				problems = append(problems, fmt.Sprintf("%s gets the key %s: expected one of KEYS", c.command, arg))
				continue
			}
			inPlace++
			n, err := s.keyNumbers(luaKey.FindStringSubmatch(arg)[1], c.at)
			if err != nil {
				problems = append(problems, err.Error())
			}
			for _, k := range n {
				used[k] = true
			}
		}
	}
	if all := len(luaKey.FindAllString(s.bare, -1)); all != inPlace {
		problems = append(problems,
			fmt.Sprintf("KEYS is used %d times, but only %d times as the key of a command", all, inPlace))
	}
	for i := range s.header.keys {
		if !used[i+1] {
			problems = append(problems, fmt.Sprintf("key %d of the header is not used", i+1))
		}
		delete(used, i+1)
	}
	if len(used) > 0 {
		problems = append(problems,
			fmt.Sprintf("keys %v are used, but not in the header", slices.Sorted(maps.Keys(used))))
	}
	return problems
}

// keyNumbers resolves the index of KEYS in a command: a number, or with keys for each queue an offset from the loop's
// variable.
func (s *luaSource) keyNumbers(index string, at int) ([]int, error) {
	if n, err := strconv.Atoi(index); err == nil && !s.header.each {
		return []int{n}, nil
	}
	m := luaIndex.FindStringSubmatch(index)
	if m == nil || !s.header.each {
		return nil, fmt.Errorf("KEYS[%s]: expected a number", index)
	}
	loop := s.loopOf(m[1], at)
	if loop == nil {
		return nil, fmt.Errorf("KEYS[%s]: expected the variable of a loop", index)
	}
	offset, _ := strconv.Atoi("0" + m[2])
	if loop.last == "#KEYS" {
		if loop.first != "1" || loop.step != strconv.Itoa(len(s.header.keys)) {
			return nil, fmt.Errorf("loop over KEYS from %s by %s: expected from 1 by %d", loop.first, loop.step,
				len(s.header.keys))
		}
		return []int{1 + offset}, nil
	}
	first, err := s.keyNumbers(loop.first, loop.at)
	if err != nil {
		return nil, err
	}
	last, err := s.keyNumbers(loop.last, loop.at)
	if err != nil {
		return nil, err
	}
	var all []int
	for n := first[0]; n <= last[0]; n++ {
		all = append(all, n+offset)
	}
	return all, nil
}

// checkArgv compares the arguments of the header with those in use.
func checkArgv(s *luaSource) (problems []string) {
	h := &s.header
	used := map[int]bool{}
	for _, m := range luaArg.FindAllStringSubmatch(s.bare, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			used[n] = true
		}
	}
	for _, loop := range s.loops {
		first, err := strconv.Atoi(loop.first)
		step, err2 := strconv.Atoi(loop.step)
		if err2 != nil {
			problems = append(problems, fmt.Sprintf("loop with the step %s: expected a number", loop.step))
		}
		if loop.last == "#ARGV" && step != h.width {
			problems = append(problems,
				fmt.Sprintf("loop to #ARGV by %d, but the header has groups of %d", step, h.width))
		}
		// A loop says which arguments it reads only if it begins at a number.
		if err == nil && luaReads(s, loop) {
			for i := range max(step, 1) {
				used[first+i] = true
			}
		}
	}
	if strings.Contains(s.bare, "unpack(ARGV)") {
		used[1] = true
	}
	for _, n := range h.fixed {
		if !used[n] {
			problems = append(problems, fmt.Sprintf("argument %d of the header is not used", n))
		}
		delete(used, n)
	}
	if h.open > 0 && !used[h.open] && !s.loopsFrom(h.open) {
		problems = append(problems, fmt.Sprintf("arguments from %d on are in the header, but not used", h.open))
	}
	for i := range h.width {
		delete(used, h.open+i)
	}
	if len(used) > 0 {
		problems = append(problems,
			fmt.Sprintf("arguments %v are used, but not in the header", slices.Sorted(maps.Keys(used))))
	}
	if h.open > 0 && (h.most < 1 || h.most > 2500) {
		problems = append(problems,
			fmt.Sprintf("any number of arguments from %d on: expected the header to say \"at most n\", n up to 2,500",
				h.open))
	}
	return append(problems, s.checkGroups()...)
}

// luaReads reports whether the body of a loop, up to its end or the next loop's, indexes ARGV with its variable.
func luaReads(s *luaSource, loop luaLoop) bool {
	rest := s.bare[loop.at:]
	if next := luaFor.FindStringIndex(rest[1:]); next != nil {
		rest = rest[:next[0]+1]
	}
	return regexp.MustCompile(`\bARGV\[` + loop.variable + `\b`).MatchString(rest)
}

// loopsFrom reports whether a loop to the last argument, or an unpack of them, begins at number n, plus the length of
// what precedes it.
func (s *luaSource) loopsFrom(n int) bool {
	if strings.Contains(s.bare, "local first = "+strconv.Itoa(n)+" + ") &&
		strings.Contains(s.bare, "unpack(ARGV, first)") {
		return true
	}
	return slices.ContainsFunc(s.loops, func(l luaLoop) bool {
		return l.last == "#ARGV" && strings.HasPrefix(l.first, strconv.Itoa(n)+" + ")
	})
}

// checkGroups checks that a script uses every argument of a group, and none beyond it.
func (s *luaSource) checkGroups() (problems []string) {
	used := map[int]bool{}
	for _, loop := range s.loops {
		if loop.last != "#ARGV" {
			continue
		}
		for _, m := range luaArg.FindAllStringSubmatch(s.bare[loop.at:], -1) {
			if parts := luaIndex.FindStringSubmatch(m[1]); parts != nil && parts[1] == loop.variable {
				offset, _ := strconv.Atoi("0" + parts[2])
				used[offset] = true
			}
		}
	}
	if s.header.width < 2 {
		return nil
	}
	for i := range s.header.width {
		if !used[i] {
			problems = append(problems, fmt.Sprintf("number %d of each group of arguments is not used", i+1))
		}
		delete(used, i)
	}
	if len(used) > 0 {
		problems = append(problems,
			fmt.Sprintf("groups of %d arguments: offsets %v are beyond them", s.header.width, used))
	}
	return problems
}

// checkWords checks that a script uses only its own local names and the common vocabulary.
func checkWords(s *luaSource) (problems []string) {
	known := slices.Clone(luaKnown)
	for _, m := range luaLocal.FindAllStringSubmatch(s.bare, -1) {
		known = append(known, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	for _, m := range luaParams.FindAllStringSubmatch(s.bare, -1) {
		known = append(known, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	for _, l := range s.loops {
		known = append(known, l.variable)
	}
	owner := ""
	for _, word := range luaWord.FindAllString(s.bare, -1) {
		switch {
		case word[0] == '.' && !strings.HasPrefix(word, ". "):
			if member := owner + word; !slices.Contains(luaMembers, member) {
				problems = append(problems,
					fmt.Sprintf("%s: expected one of %s", member, strings.Join(luaMembers, ", ")))
			}
		case word[0] == ':':
			problems = append(problems, fmt.Sprintf("method call %s: expected a function", word))
		default:
			word = strings.TrimSpace(strings.TrimPrefix(word, "."))
			if !slices.Contains(known, word) {
				problems = append(problems, fmt.Sprintf("%s is neither a local name nor common to all servers", word))
			}
			owner = word
		}
	}
	if strings.Count(s.bare, "redis") != len(s.calls) {
		problems = append(problems, "redis is used other than by redis.call('COMMAND', …)")
	}
	if luaNil.MatchString(s.bare) {
		problems = append(problems,
			"comparison with nil: Redis gives a script false for what is missing, so write: not x")
	}
	return problems
}

// checkBounds checks that arguments, and not the data, limit loops and unpack.
func checkBounds(s *luaSource) (problems []string) {
	loose := map[string]bool{}
	for range 3 { // names may pass through others
		for _, m := range luaAssign.FindAllStringSubmatchIndex(s.bare, -1) {
			value := s.code[m[4]:m[5]]
			bad := unboundedCommands.MatchString(value) && !strings.Contains(value, "'LIMIT'")
			for _, word := range luaWord.FindAllString(value, -1) {
				bad = bad || loose[word]
			}
			// A range by rank is bounded by its ranks.
			if strings.Contains(value, "'ZRANGE'") || strings.Contains(value, "'LRANGE'") {
				bad = strings.Contains(value, "-1)") && !strings.Contains(value, ") - 1)") || rangeIsLoose(value, loose)
			}
			if strings.Contains(value, "math.min(") {
				bad = false
			}
			for name := range strings.SplitSeq(s.code[m[2]:m[3]], ",") {
				loose[strings.TrimSpace(name)] = bad
			}
		}
	}
	for _, l := range s.loops {
		for _, word := range luaWord.FindAllString(l.first+" "+l.last, -1) {
			if loose[strings.TrimSpace(word)] {
				problems = append(problems,
					fmt.Sprintf("loop from %s to %s: %s is as large as the data; bound it with math.min and an "+
						"argument", l.first, l.last, strings.TrimSpace(word)))
			}
		}
		if strings.Contains(l.first+l.last, "redis") {
			problems = append(problems,
				fmt.Sprintf("loop from %s to %s ends where the data does: bound it with math.min and an argument",
					l.first, l.last))
		}
	}
	for _, m := range luaUnpack.FindAllStringSubmatch(s.bare, -1) {
		if loose[m[1]] {
			problems = append(problems, fmt.Sprintf("unpack(%s): it is as long as the data", m[1]))
		}
	}
	return problems
}

func rangeIsLoose(value string, loose map[string]bool) bool {
	_, ranks, _ := strings.Cut(value, "], ")
	for _, word := range luaWord.FindAllString(ranks, -1) {
		if loose[strings.TrimSpace(word)] {
			return true
		}
	}
	return false
}

// checkWrites compares the first write of a script with what its header says about a full Redis.
func checkWrites(s *luaSource) (problems []string) {
	first := ""
	cost := s.header.cost
	refused := strings.Contains(cost, "A full Redis refuses it")
	for _, c := range s.calls {
		cmd, ok := redisCommands[c.command]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s is not in the list of commands", c.command))
		}
		if cmd.access != reads && first == "" {
			first = c.command
			if cmd.access == grows && !refused {
				problems = append(problems,
					fmt.Sprintf("the first write is %s, which a full Redis refuses: begin with one that it allows",
						c.command))
			}
		}
	}
	said := firstWrite.FindStringSubmatch(cost)
	switch {
	case first == "":
		if !strings.Contains(cost, "Reads only") {
			problems = append(problems, `it writes nothing: expected the header to say "Reads only"`)
		}
	case refused:
		if redisCommands[first].access != grows {
			problems = append(problems,
				fmt.Sprintf("its first write, %s, is one that a full Redis allows, but the header says that it refuses",
					first))
		}
	case said == nil || !strings.Contains(cost, "Works on a full Redis: "):
		problems = append(problems,
			`expected the header to say "Works on a full Redis: its first write is an X." or "… X is allowed."`)
	case !slices.Contains(said[1:], first):
		problems = append(problems, fmt.Sprintf("the header says %q, the first write is %s", said[0], first))
	}
	return problems
}

// TestScripts holds each script, joined with its includes, against the rules.
func TestScripts(t *testing.T) {
	for _, name := range lua.Names() {
		t.Run(name, func(t *testing.T) {
			if Scripts[name] == nil {
				t.Fatalf("lua/%s.lua is not in the table of scripts", name)
			}
			s, problems := parseLua(name, lua.Source(name))
			for _, p := range append(problems, checkLua(s)...) {
				t.Errorf("%s: %s", s.file, p)
			}
		})
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
		s, problems := parseLua(limit.script, Scripts[limit.script].Source)
		if len(problems) > 0 {
			t.Errorf("%s: %q", limit.script, problems)
		}
		if s.header.most == 0 || limit.sent > s.header.most {
			t.Errorf("%s: its header allows %d, Go sends up to %d", limit.script, s.header.most, limit.sent)
		}
	}
}
