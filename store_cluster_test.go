package delayed

import (
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
}
