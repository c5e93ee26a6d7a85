package redisstore

import (
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
	suffix string // "_tasks", or "_worker:" when a worker's id or a day follows
	called string // name in the headers of scripts
	kind   string
	use    keyUse
}

// keyUse is what the scripts do with a key.
type keyUse struct {
	putIn   []string // names of scripts that put something there, sorted
	takenBy []string // names of scripts that take something from there, sorted
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
	keys    []dictionaryKey
	scripts map[string]string // name to what it does
	broken  bool              // some line has another form
}

var (
	readmeWrap = regexp.MustCompile(`\n +([^ -])`)
	readmeKey  = regexp.MustCompile("(?m)^- \\*\\*`(?:N([a-z_]*:?)(?:<\\w+>)?|(delayed_[a-z]+:?)(?:<name>)?)`\\*\\* " +
		"\\(([^,()]+), ([a-z]+)\\): .+\\.\n  - Put in by: (.+)\n  - Taken out by: (.+)\n(  - Time to live: .+\n)?")
	readmeScript = regexp.MustCompile(`(?m)^- \*\*\[(\w+)\]\((\w+)\.lua\)\*\*: (.+\.) Called by [^.]+\.$`)
)

// readDictionary reads lua/README.md, once for all cases of the store. TestKeyDictionary fails if it cannot.
var readDictionary = sync.OnceValue(func() dictionary {
	file, err := os.ReadFile("../../lua/README.md")
	text := readmeWrap.ReplaceAllString(string(file), " $1")
	d := dictionary{scripts: map[string]string{}}
	for _, m := range readmeKey.FindAllStringSubmatch(text, -1) {
		use := keyUse{scriptsIn(m[5]), scriptsIn(m[6]), m[7] != ""}
		d.keys = append(d.keys, dictionaryKey{suffix: m[1] + m[2], called: m[3], kind: m[4], use: use})
	}
	for _, m := range readmeScript.FindAllStringSubmatch(text, -1) {
		if m[1] == m[2] {
			d.scripts[m[1]] = m[3]
		}
	}
	d.broken = err != nil || strings.Count(text, "\n- **`") != len(d.keys) ||
		strings.Count(text, "\n- **[") != len(d.scripts)
	return d
})

// scriptsIn reads a line that lists scripts and, behind a semicolon, others.
func scriptsIn(line string) []string {
	list, _, _ := strings.Cut(line, ";")
	if list == "no script" {
		return nil
	}
	return slices.Sorted(slices.Values(strings.Split(list, ", ")))
}

// usesOfKeys reads from the scripts what they do with each key, by suffix.
func usesOfKeys(t *testing.T) map[string]*keyUse {
	t.Helper()
	uses := map[string]*keyUse{}
	for _, name := range slices.Sorted(maps.Keys(Scripts)) {
		s := scriptTexts()[name]
		for i, called := range s.keys {
			keys := keysCalled(called)
			if len(keys) == 0 {
				t.Errorf("%s calls a key %q, which the page does not list", name, called)
			}
			for _, k := range keys {
				if uses[k.suffix] == nil {
					uses[k.suffix] = &keyUse{}
				}
				for _, c := range s.calls {
					if slices.Contains(c.keys, i+1) {
						uses[k.suffix].add(name, k.suffix, c)
					}
				}
			}
		}
	}
	return uses
}

// add records what a command does to the key. It ignores writes that change nothing: scripts begin with them because a
// full Redis allows them.
func (u *keyUse) add(script, suffix string, c luaCall) {
	idle := (c.command == "SREM" || c.command == "ZREM") && strings.HasPrefix(c.rest, ", ''") ||
		c.command == "LTRIM" && c.rest == ", 0, -1"
	// Of the sets in which shelve stores tasks, only the archive is limited.
	elsewhere := script == "shelve" && c.command == "ZREM" && suffix != "_archived"
	switch {
	case c.command == "EXPIRE" || c.command == "PEXPIRE":
		u.expires = true
	case slices.Contains(luaGrows, c.command):
		u.putIn = append(u.putIn, script)
		u.expires = u.expires || strings.Contains(c.rest, "'PX'")
	case slices.Contains(luaFrees, c.command) && !idle && !elsewhere:
		u.takenBy = append(u.takenBy, script)
	}
}

// TestKeyDictionary compares lua/README.md with keys.go and the scripts.
func TestKeyDictionary(t *testing.T) {
	d := readDictionary()
	if d.broken {
		t.Error("lua/README.md: an entry is malformed or stands twice, or the page cannot be read")
	}
	var suffixes, named []string
	for _, k := range d.keys {
		suffixes = append(suffixes, k.suffix)
	}
	fields := reflect.ValueOf(newQueueKeys("", ""))
	for i := range fields.NumField() {
		named = append(named, fields.Field(i).String())
	}
	compare(t, "keys", suffixes, slices.Concat(named, sharedKeys, []string{semaphoreInfix}))
	refused := slices.Concat([]string{""}, keySuffixes, keyInfixes, sharedKeys)
	compare(t, "ends of names that are refused", suffixes, refused)
	uses := usesOfKeys(t)
	for _, k := range d.keys {
		use := uses[k.suffix]
		if use == nil {
			t.Errorf("N%s: no script has it among its KEYS", k.suffix)
			continue
		}
		use.putIn, use.takenBy = slices.Compact(use.putIn), slices.Compact(use.takenBy)
		if !reflect.DeepEqual(k.use, *use) {
			t.Errorf("N%s: put in by, taken out by, expires: the page has %v, the scripts have %v", k.suffix, k.use,
				*use)
		}
	}
	compare(t, "scripts", slices.Collect(maps.Keys(d.scripts)), slices.Collect(maps.Keys(Scripts)))
	for name, about := range d.scripts {
		if said := scriptTexts()[name].about; about != said {
			t.Errorf("script %s: the page says %q, its header %q", name, about, said)
		}
	}
}

// compare reports what is only on the page and what is only in the code.
func compare(t *testing.T, what string, page, code []string) {
	t.Helper()
	in := func(a []string) func(string) bool {
		return func(s string) bool { return slices.Contains(a, s) }
	}
	onPage, inCode := slices.DeleteFunc(slices.Clone(page), in(code)), slices.DeleteFunc(code, in(page))
	if len(onPage)+len(inCode) > 0 {
		t.Errorf("%s: only lua/README.md has %q, only the code has %q", what, onPage, inCode)
	}
}
