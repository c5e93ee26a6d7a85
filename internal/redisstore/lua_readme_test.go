package redisstore

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// dictionaryKey is a row of the key dictionary in lua/README.md.
type dictionaryKey struct {
	suffix  string // "_tasks", or "_worker:" when a worker's id or a day follows
	called  string // in the headers of scripts
	kind    string
	putIn   []string // scripts
	takenBy []string // scripts
	expires bool
}

// matches reports whether a key of a queue, or of the one beside it in some tests, is this one.
func (k *dictionaryKey) matches(suffix string) bool {
	suffix = strings.TrimPrefix(suffix, ".other")
	if rest, ok := strings.CutPrefix(suffix, k.suffix); ok {
		return rest == "" || strings.HasSuffix(k.suffix, ":")
	}
	return false
}

// calledAlso are names in headers that stand for one of several keys.
var calledAlso = map[string][]string{
	"the sorted set":                         {"_scheduled", "_retry", "_parked", "_archived"},
	"some pending list":                      {"", "_suspects"},
	"its notify list":                        {"_noti", "_suspects_noti"},
	"scheduled or retry set":                 {"_scheduled", "_retry"},
	"scheduled, retry or parked set":         {"_scheduled", "_retry", "_parked"},
	"hash of messages or infos":              {"_tasks", "_info", "_results", "_processing", "_processing:"},
	"pending or group list":                  {"", "_group:"},
	"its processing hash":                    {"_processing:", "_processing"},
	"key that exists while the worker lives": {"_worker:"},
}

// keysCalled returns the keys that a header may mean.
func keysCalled(name string) (keys []dictionaryKey) {
	for _, k := range readDictionary().keys {
		if k.called == name || slices.Contains(calledAlso[name], k.suffix) {
			keys = append(keys, k)
		}
	}
	return keys
}

// dictionary is what lua/README.md says.
type dictionary struct {
	keys     []dictionaryKey
	reserved []string          // suffixes of keys to come
	scripts  map[string]string // name to what it does
	problems []string
}

var (
	readmeKey      = regexp.MustCompile("^`N([a-z_]*:?)(?:<(?:worker|day|group|entry)>)?`$")
	readmeScript   = regexp.MustCompile(`^\[(\w+)\]\((\w+)\.lua\)$`)
	readmeReserved = regexp.MustCompile(`^Reserved for later: (.*)\.$`)
)

// readDictionary reads the tables of lua/README.md, once for all cases of the store.
var readDictionary = sync.OnceValue(func() dictionary {
	text, err := os.ReadFile("../../lua/README.md")
	if err != nil {
		return dictionary{problems: []string{err.Error()}}
	}
	return parseDictionary(string(text))
})

func parseDictionary(text string) (d dictionary) {
	d.scripts = map[string]string{}
	bad := func(line string) { d.problems = append(d.problems, fmt.Sprintf("malformed line: %s", line)) }
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := readmeReserved.FindStringSubmatch(line); m != nil {
			for key := range strings.SplitSeq(m[1], ", ") {
				if k := readmeKey.FindStringSubmatch(key); k != nil {
					d.reserved = append(d.reserved, k[1])
				} else {
					bad(line)
				}
			}
			continue
		}
		if !strings.HasPrefix(line, "| `N") && !strings.HasPrefix(line, "| [") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if m := readmeScript.FindStringSubmatch(cells[0]); m != nil && len(cells) == 3 && m[1] == m[2] {
			d.scripts[m[1]] = cells[1]
		} else if m := readmeKey.FindStringSubmatch(cells[0]); m != nil && len(cells) == 7 {
			d.keys = append(d.keys, dictionaryKey{
				suffix: m[1], called: cells[1], kind: cells[2],
				putIn: scriptsIn(cells[4]), takenBy: scriptsIn(cells[5]), expires: cells[6] != "–",
			})
		} else {
			bad(line)
		}
	}
	return d
}

// scriptsIn reads a cell that lists scripts and, behind a semicolon, others.
func scriptsIn(cell string) []string {
	list, _, _ := strings.Cut(cell, ";")
	if list = strings.TrimSpace(list); list == "–" || list == "" {
		return nil
	}
	return strings.Split(list, ", ")
}

// keyUse is what the scripts do with a key.
type keyUse struct {
	putIn, takenBy []string
	expires        bool
}

// keyUses reads from the scripts what they do with each key, by suffix.
func keyUses(d *dictionary) (uses map[string]*keyUse, problems []string) {
	uses = map[string]*keyUse{}
	for _, name := range slices.Sorted(maps.Keys(Scripts)) {
		s, _ := parseLua(name+".lua", Scripts[name].Source)
		for i, called := range s.header.keys {
			var keys []string
			for _, k := range d.keys {
				if k.called == called || slices.Contains(calledAlso[called], k.suffix) {
					keys = append(keys, k.suffix)
				}
			}
			if len(keys) == 0 {
				problems = append(problems, fmt.Sprintf("lua/%s.lua calls a key %q, which is in no row", name, called))
			}
			for _, c := range s.calls {
				for _, suffix := range keys {
					if uses[suffix] == nil {
						uses[suffix] = &keyUse{}
					}
					if s.touches(c, i+1) {
						uses[suffix].add(name, suffix, c)
					}
				}
			}
		}
	}
	return uses, problems
}

// touches reports whether a command works on a key.
func (s *luaSource) touches(c luaCall, key int) bool {
	return slices.ContainsFunc(keyArgs(c), func(arg string) bool {
		m := luaKey.FindStringSubmatch(arg)
		if m == nil {
			return false
		}
		numbers, err := s.keyNumbers(m[1], c.at)
		return err == nil && slices.Contains(numbers, key)
	})
}

// add notes what a command does to the key. It ignores writes that change nothing: scripts begin with them because a
// full Redis allows them.
func (u *keyUse) add(script, suffix string, c luaCall) {
	note := func(list *[]string) {
		if !slices.Contains(*list, script) {
			*list = append(*list, script)
		}
	}
	idle := (c.command == "SREM" || c.command == "ZREM") && c.args[1] == "''" || c.command == "LTRIM" &&
		slices.Equal(c.args[1:], []string{"0", "-1"})
	// Of the sets that shelve files tasks in, only the archive has a bound.
	elsewhere := script == "shelve" && c.command == "ZREM" && suffix != "_archived" && suffix != "_locked"
	switch {
	case c.command == "EXPIRE" || c.command == "PEXPIRE":
		u.expires = true
	case redisCommands[c.command].access == grows:
		note(&u.putIn)
		u.expires = u.expires || slices.Contains(c.args, "'PX'")
	case redisCommands[c.command].access == frees && !idle && !elsewhere:
		note(&u.takenBy)
	}
}

// checkDictionary holds the dictionary against keys.go and the scripts.
func checkDictionary(d *dictionary) (problems []string) {
	problems = slices.Clone(d.problems)
	var suffixes, named []string
	for _, k := range d.keys {
		suffixes = append(suffixes, k.suffix)
	}
	fields := reflect.ValueOf(newQueueKeys("", ""))
	for i := range fields.NumField() {
		named = append(named, fields.Field(i).String())
	}
	if missing := without(named, suffixes); len(missing) > 0 {
		problems = append(problems, fmt.Sprintf("keys of keys.go are in no row: N%s", strings.Join(missing, ", N")))
	}
	if extra := without(suffixes, named); len(extra) > 0 {
		problems = append(problems, fmt.Sprintf("keys are not in keys.go: N%s", strings.Join(extra, ", N")))
	}
	refused := append([]string{""}, slices.Concat(keySuffixes, keyInfixes)...)
	all := slices.Concat(suffixes, d.reserved)
	if differ := slices.Concat(without(refused, all), without(all, refused)); len(differ) > 0 {
		problems = append(problems,
			fmt.Sprintf("refused at the end of queue names, or in the dictionary, but not both: N%s",
				strings.Join(differ, ", N")))
	}
	uses, more := keyUses(d)
	problems = append(problems, more...)
	for _, k := range d.keys {
		use := uses[k.suffix]
		if use == nil {
			problems = append(problems, fmt.Sprintf("N%s: no script has it among its KEYS", k.suffix))
			continue
		}
		if slices.Sort(k.putIn); !slices.Equal(k.putIn, use.putIn) {
			problems = append(problems,
				fmt.Sprintf("N%s: put in by %s, the scripts say %s", k.suffix, k.putIn, use.putIn))
		}
		if slices.Sort(k.takenBy); !slices.Equal(k.takenBy, use.takenBy) {
			problems = append(problems,
				fmt.Sprintf("N%s: taken out by %s, the scripts say %s", k.suffix, k.takenBy, use.takenBy))
		}
		if k.expires != use.expires {
			problems = append(problems,
				fmt.Sprintf("N%s: time to live: %v, the scripts say %v", k.suffix, k.expires, use.expires))
		}
	}
	for name, row := range Scripts {
		s, _ := parseLua(name+".lua", row.Source)
		if about, ok := d.scripts[name]; !ok || about != s.header.about {
			problems = append(problems,
				fmt.Sprintf("script %s: the row says %q, its header %q", name, about, s.header.about))
		}
	}
	for name := range d.scripts {
		if Scripts[name] == nil {
			problems = append(problems, fmt.Sprintf("script %s does not exist", name))
		}
	}
	return problems
}

// without returns those of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func TestKeyDictionary(t *testing.T) {
	d := readDictionary()
	for _, p := range checkDictionary(&d) {
		t.Errorf("lua/README.md: %s", p)
	}
}

// TestKeyDictionaryCanFail plants faults into the dictionary, one at a time.
func TestKeyDictionaryCanFail(t *testing.T) {
	text, err := os.ReadFile("../../lua/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"| `N_mode` |", "| `N_form` |", "keys of keys.go are in no row: N_mode"},
		{"| `N_mode` |", "| `N_form` |", "keys are not in keys.go: N_form"},
		{"| `N_mode` |", "| `N-mode` |", "malformed line"},
		{"| worker set |", "| workers |", `calls a key "worker set", which is in no row`},
		{"| `N_results` |", "| `N_outcomes` |", "but not both: N_results, N_outcomes"},
		{"| `N_revoked` |", "| `N_dropped` |", "but not both: N_revoked, N_dropped"},
		{"| 90 days |", "| – |", "N_stats:: time to live: false, the scripts say true"},
		{
			"| shelve | cancel, condemn, enlist, unpark |", "| shelve | cancel, enlist, unpark |",
			"N_parked: taken out by [cancel enlist unpark], the scripts say [cancel condemn enlist unpark]",
		},
		{"| survey | – | one", "| – | – | one", "N_sweeper: put in by"},
		{"| [trim](trim.lua) |", "| [trim](prune.lua) |", "malformed line"},
		{"| [trim](trim.lua) |", "| [prune](prune.lua) |", "script trim: the row says"},
		{"| [trim](trim.lua) |", "| [prune](prune.lua) |", "script prune does not exist"},
	} {
		if c.old != "" && strings.Count(string(text), c.old) != 1 {
			t.Errorf("planting %q: %d places, expected one", c.new, strings.Count(string(text), c.old))
		}
		d := parseDictionary(strings.Replace(string(text), c.old, c.new, 1))
		got := strings.Join(checkDictionary(&d), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q in place of %q: expected a problem with %q, found:\n%s", c.new, c.old, c.want, got)
		}
	}
}
