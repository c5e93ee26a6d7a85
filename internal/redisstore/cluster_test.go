package redisstore

import (
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// DialCluster returns the source of a handle that rediscluster.Dial has made. The external tests set it, because
// rediscluster imports this package.
var DialCluster func(t testing.TB, url string) Source

// TestStoreOnCluster runs all cases on a cluster, where every key of a call must be in one slot.
func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	runTables(t, &target{src: DialCluster(t, cluster.URL()), prefix: "app:", tagged: true, dial: cluster.Dial})
}
