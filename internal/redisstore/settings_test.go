package redisstore

import (
	"maps"
	"strings"
	"testing"
)

// TestSettingsAreJudged compares the settings that servers report with the expected ones.
func TestSettingsAreJudged(t *testing.T) {
	sound := map[string]string{
		"redis_version": "7.2.4", "role": "master", "maxmemory_policy": "noeviction",
		"aof_enabled": "1",
	}
	for _, c := range []struct{ field, value, unfit, warning string }{
		{"redis_version", "6.2.0", "", ""},
		{"redis_version", "6.0.20", "version", ""},
		{"redis_version", "5.0", "version", ""},
		{"redis_version", "255.255.255", "", ""},
		{"redis_version", "unstable", "", ""},
		{"redis_version", "", "", "does not tell redis_version"},
		{"role", "slave", "replica", ""},
		{"role", "", "", "does not tell role"},
		{"maxmemory_policy", "", "", "does not tell maxmemory_policy"},
		{"maxmemory_policy", "allkeys-lfu", "eviction", ""},
		{"aof_enabled", "", "", "does not tell aof_enabled"},
		{"aof_enabled", "0", "", "no append-only file"},
	} {
		info := maps.Clone(sound)
		info[c.field] = c.value
		var f Findings
		f.check("a server", info)
		var unfit []string
		for _, u := range f.Unfit {
			unfit = append(unfit, u.Name)
		}
		if all := strings.Join(f.Warnings, "\n"); strings.Join(unfit, " ") != c.unfit ||
			(all == "") != (c.warning == "") || !strings.Contains(all, c.warning) {
			t.Errorf("%s %q: found %+v", c.field, c.value, f)
		}
	}
}
