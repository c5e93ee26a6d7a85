package delayed

import (
	"errors"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// DialCluster is rediscluster.Dial. A test of package delayed_test sets it, because rediscluster imports this package.
var DialCluster func(url string) (*Redis, error)

// TestStoreOnCluster runs all cases on a cluster, where every key of a call must be in one slot.
func TestStoreOnCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	rdb, err := DialCluster(cluster.URL())
	runTables(t, &target{src: sourceOf(t, rdb, err), prefix: "app:", tagged: true, dial: cluster.Dial})
	t.Run("Check", func(t *testing.T) { checkCluster(t, cluster, rdb) })
}

// checkCluster expects that each master is looked at.
func checkCluster(t *testing.T, cluster *redistest.Cluster, rdb *Redis) {
	t.Helper()
	warnings, err := rdb.Check(t.Context())
	if err != nil || len(warnings) != len(cluster.Nodes) {
		t.Errorf("found %v, warnings %q, expected one about each append-only file", err, warnings)
	}
	for _, node := range cluster.Nodes {
		node.Do(t, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
		var unfit *SettingError
		if _, err := rdb.Check(t.Context()); !errors.As(err, &unfit) || unfit.Name != "eviction" ||
			strings.Count(err.Error(), "maxmemory-policy") != 2 ||
			!strings.Contains(err.Error(), "Redis at "+node.Addr()) {
			t.Errorf("node %s: found %v", node.Addr(), err)
		}
		node.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	}
}
