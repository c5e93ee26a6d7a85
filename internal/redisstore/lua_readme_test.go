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

// dictionaryKey is an entry of the list of keys in lua/README.md.
type dictionaryKey struct {
	suffix  string // "_tasks", or "_worker:" when a worker's id or a day follows
	called  string // name in the headers of scripts
	kind    string
	putIn   []string // scripts that put something there
	takenBy []string // scripts that take something from there
	expires bool
}

// matches reports whether a key of a queue, or of the other queue in some tests, is this one.
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
	"the sorted or completed set":            {"_scheduled", "_retry", "_parked", "_archived", "_completed"},
	"the other sorted set":                   {"_scheduled", "_retry", "_parked", "_archived"},
	"scheduled or archived set":              {"_scheduled", "_archived"},
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

// dictionary is the content of lua/README.md.
type dictionary struct {
	keys     []dictionaryKey
	reserved []string          // suffixes reserved for later versions
	scripts  map[string]string // name to what it does
	problems []string
}

var (
	readmeKey = regexp.MustCompile(
		"^`(?:N([a-z_]*:?)(?:<(?:worker|day|group|entry|time)>)?|(delayed_[a-z]+:?)(?:<name>)?)`$")
	readmeKeyEntry = regexp.MustCompile("^- \\*\\*(`[^`]+`)\\*\\* \\(([^,()]+), ([a-z]+)\\): .+\\.$")
	readmeKeyPart  = regexp.MustCompile(`^  - ([A-Z][a-z ]+): (.+)$`)
	readmeScript   = regexp.MustCompile(`^- \*\*\[(\w+)\]\((\w+)\.lua\)\*\*: (.+\.) Called by [^.]+\.$`)
	readmeReserved = regexp.MustCompile(`^Reserved for later: (.*)\.$`)
)

// readDictionary reads the lists of lua/README.md, once for all cases of the store.
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
	section, parts := "", map[string]string{}
	finish := func() {
		if parts["entry"] != "" && (parts["Put in by"] == "" || parts["Taken out by"] == "") {
			d.problems = append(d.problems, fmt.Sprintf("not said who puts in and takes out: %s", parts["entry"]))
		}
		clear(parts)
	}
	for _, line := range unwrapped(text) {
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
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		if !strings.HasPrefix(line, "  - ") {
			finish()
		}
		switch item := strings.HasPrefix(strings.TrimSpace(line), "- "); {
		case item && section == "Keys":
			if !d.readKey(line, parts) {
				bad(line)
			}
		case item && section == "Scripts":
			if m := readmeScript.FindStringSubmatch(line); m != nil && m[1] == m[2] && d.scripts[m[1]] == "" {
				d.scripts[m[1]] = m[3]
			} else {
				bad(line)
			}
		}
	}
	finish()
	return d
}

// unwrapped returns the lines of a page; those that continue an item of a list are joined to it.
func unwrapped(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		rest := strings.TrimLeft(line, " ")
		if n := len(lines); n > 0 && rest != line && rest != "" && !strings.HasPrefix(rest, "- ") {
			lines[n-1] += " " + rest
		} else {
			lines = append(lines, line)
		}
	}
	return lines
}

// readKey reads a line of the list of keys: the entry of a key, or one of the lines below it. parts holds what was
// read of the entry. It returns false if the line has another form, or says something for the second time.
func (d *dictionary) readKey(line string, parts map[string]string) bool {
	if m := readmeKeyEntry.FindStringSubmatch(line); m != nil {
		key := readmeKey.FindStringSubmatch(m[1])
		if key == nil {
			return false
		}
		suffix := key[1] + key[2]
		if slices.ContainsFunc(d.keys, func(k dictionaryKey) bool { return k.suffix == suffix }) {
			return false
		}
		parts["entry"] = line
		d.keys = append(d.keys, dictionaryKey{suffix: suffix, called: m[2], kind: m[3]})
		return true
	}
	m := readmeKeyPart.FindStringSubmatch(line)
	if m == nil || parts["entry"] == "" || parts[m[1]] != "" {
		return false
	}
	parts[m[1]] = m[2]
	k := &d.keys[len(d.keys)-1]
	switch m[1] {
	case "Put in by":
		k.putIn = scriptsIn(m[2])
	case "Taken out by":
		k.takenBy = scriptsIn(m[2])
	case "Time to live":
		k.expires = true
	default:
		return false
	}
	return true
}

// scriptsIn reads a line that lists scripts and, behind a semicolon, others.
func scriptsIn(line string) []string {
	list, _, _ := strings.Cut(line, ";")
	if list == "no script" {
		return nil
	}
	return strings.Split(list, ", ")
}

// keyUse records what the scripts do with a key.
type keyUse struct {
	putIn, takenBy []string
	expires        bool
}

// keyUses reads from the scripts what they do with each key, by suffix.
func keyUses(d *dictionary) (uses map[string]*keyUse, problems []string) {
	uses = map[string]*keyUse{}
	for _, name := range slices.Sorted(maps.Keys(Scripts)) {
		s, _ := parseLua(name, Scripts[name].Source)
		for i, called := range s.header.keys {
			var keys []string
			for _, k := range d.keys {
				if k.called == called || slices.Contains(calledAlso[called], k.suffix) {
					keys = append(keys, k.suffix)
				}
			}
			if len(keys) == 0 {
				problems = append(problems,
					fmt.Sprintf("%s calls a key %q, which the page does not list", s.file, called))
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

// add records what a command does to the key. It ignores writes that change nothing: scripts begin with them because a
// full Redis allows them.
func (u *keyUse) add(script, suffix string, c luaCall) {
	note := func(list *[]string) {
		if !slices.Contains(*list, script) {
			*list = append(*list, script)
		}
	}
	idle := (c.command == "SREM" || c.command == "ZREM") && c.args[1] == "''" || c.command == "LTRIM" &&
		slices.Equal(c.args[1:], []string{"0", "-1"})
	// Of the sets in which shelve stores tasks, only the archive is limited.
	elsewhere := script == "shelve" && c.command == "ZREM" && suffix != "_archived"
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

// checkDictionary compares the dictionary with keys.go and the scripts.
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
	named = append(append(named, sharedKeys...), semaphoreInfix)
	if missing := without(named, suffixes); len(missing) > 0 {
		problems = append(problems, fmt.Sprintf("keys of keys.go are missing: N%s", strings.Join(missing, ", N")))
	}
	if extra := without(suffixes, named); len(extra) > 0 {
		problems = append(problems, fmt.Sprintf("keys are not in keys.go: N%s", strings.Join(extra, ", N")))
	}
	refused := append([]string{""}, slices.Concat(keySuffixes, keyInfixes, sharedKeys)...)
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
		s, _ := parseLua(name, row.Source)
		if about, ok := d.scripts[name]; !ok || about != s.header.about {
			problems = append(problems,
				fmt.Sprintf("script %s: the page says %q, its header %q", name, about, s.header.about))
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

// TestKeyDictionaryCanFail puts faults into the dictionary, one at a time.
func TestKeyDictionaryCanFail(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../lua/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"**`N_mode`**", "**`N_form`**", "keys of keys.go are missing: N_mode"},
		{"**`N_mode`**", "**`N_form`**", "keys are not in keys.go: N_form"},
		{"**`N_mode`**", "**`N-mode`**", "malformed line"},
		{"**`N_mode`**", "**`N_sweeper`**", "malformed line"},
		{"**`N_mode`** (mode, string): ", "**`N_mode`**: ", "malformed line"},
		{"(worker set, set)", "(workers, set)", `calls a key "worker set", which the page does not list`},
		{"**`N_results`**", "**`N_outcomes`**", "but not both: N_results, N_outcomes"},
		{"**`N_revoked`**", "**`N_dropped`**", "but not both: N_revoked, N_dropped"},
		{"  - Time to live: 90 days\n", "", "N_stats:: time to live: false, the scripts say true"},
		{"  - Put in by: mode\n", "", "not said who puts in and takes out: - **`N_mode`**"},
		{
			"  - Put in by: mode\n", "  - Put in by: mode\n  - Time to live: 1 s\n",
			"N_mode: time to live: true, the scripts say false",
		},
		{"  - Put in by: mode\n", "  - Put in by: mode\n  - Put in by: mode\n", "malformed line"},
		{"  - Put in by: mode\n", "  - Put in by: known\n", "N_mode: put in by [known]"},
		{
			"  - Taken out by: cancel, condemn, enlist, refile, rerun, unpark\n",
			"  - Taken out by: cancel, enlist, refile, rerun, unpark\n",
			"N_parked: taken out by [cancel enlist refile rerun unpark], " +
				"the scripts say [cancel condemn enlist refile rerun unpark]",
		},
		{"  - Put in by: survey\n", "  - Put in by: no script\n", "N_sweeper: put in by"},
		{"**[trim](trim.lua)**", "**[trim](prune.lua)**", "malformed line"},
		{"**[trim](trim.lua)**", "**[prune](prune.lua)**", "script trim: the page says"},
		{"**[trim](trim.lua)**", "**[prune](prune.lua)**", "script prune does not exist"},
		{"**[trim](trim.lua)**: delete", "**[trim](trim.lua)**: drop", "script trim: the page says"},
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
