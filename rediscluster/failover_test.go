//go:build unix

package rediscluster

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestFailover kills a master whose replica takes over: commands go there without anybody's help.
func TestFailover(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	key := "{failover}"
	master := cluster.NodeOf(t, key)
	replica := replicaOf(t, cluster, master)
	src := open(t, cluster.URL())
	c := connTo(t, src, key)
	if _, err := c.Do("SET", key, "v"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica has the key", func() bool {
		info, err := redis.String(replica.Do(t, "INFO", "keyspace"), nil)
		return err == nil && strings.Contains(info, "keys=1,")
	})
	master.Kill(t)
	if reply, err := c.Do("GET", key); err == nil {
		t.Errorf("GET on a dead node: %v", reply)
	}
	replica.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER")
	eventually(t, "the replica serves", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c, err := src.Conn(ctx, key)
		if err != nil {
			return false
		}
		defer c.Close()
		got, err := redis.String(c.Do("GET", key))
		return err == nil && got == "v"
	})
}
