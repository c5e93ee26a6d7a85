package delayed_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/rediscluster"
)

// TestCheckOfACluster: Check looks at each master.
func TestCheckOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	rdb, err := rediscluster.Dial(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	warnings, err := rdb.Check(t.Context())
	if err != nil || len(warnings) != len(cluster.Nodes) {
		t.Errorf("found %v, warnings %q, expected one about each append-only file", err, warnings)
	}
	for _, node := range cluster.Nodes {
		node.Do(t, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
		var unfit *delayed.SettingError
		if _, err := rdb.Check(t.Context()); !errors.As(err, &unfit) || unfit.Name != "eviction" ||
			strings.Count(err.Error(), "maxmemory-policy") != 2 ||
			!strings.Contains(err.Error(), "Redis at "+node.Addr()) {
			t.Errorf("node %s: found %v", node.Addr(), err)
		}
		node.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	}
}
