package lua_test

import (
	"os"
	"strings"
	"testing"

	"github.com/godelayed/delayed/lua"
)

func TestSource(t *testing.T) {
	files, err := os.ReadDir("include")
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for _, f := range files {
		unused[strings.TrimSuffix(f.Name(), ".lua")] = true
	}
	for _, name := range lua.Names() {
		for _, part := range strings.Split(lua.Source(name), "--#include ")[1:] {
			delete(unused, strings.Fields(part)[0])
		}
	}
	if len(unused) > 0 {
		t.Errorf("no script has these includes: %v", unused)
	}
	found := lua.Source("trim")
	want := "--#include count STATS=KEYS[4] LIFE=ARGV[1]\nlocal function count(name, n)\n" +
		"  if n > 0 and redis.call('HINCRBY', KEYS[4], name, n) == n then redis.call('EXPIRE', KEYS[4], ARGV[1]) end\n"
	if !strings.Contains(found, want) {
		t.Errorf("trim with its include count: expected\n%sfound\n%s", want, found)
	}
}

func TestSourceOfUnknown(t *testing.T) {
	defer func() {
		if err, ok := recover().(string); !ok || !strings.Contains(err, "expected the file lua/nothing.lua") {
			t.Errorf("expected a panic that names the file, found %q", err)
		}
	}()
	lua.Source("nothing")
}
