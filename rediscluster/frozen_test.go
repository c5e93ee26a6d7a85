//go:build unix

package rediscluster

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/redistest"
)

// withReplica starts a cluster in which the node that serves key has a replica that takes over by itself, soon.
func withReplica(t *testing.T, key string) (cluster *redistest.Cluster, master, replica *redistest.Server) {
	t.Helper()
	soon := []string{"--cluster-node-timeout", "1500", "--repl-diskless-sync-delay", "0"}
	cluster = redistest.StartCluster(t, soon...)
	master = cluster.NodeOf(t, key)
	replica = redistest.Start(t, append(soon, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")...)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica.Do(t, "CLUSTER", "MEET", host, port)
	eventually(t, "the replica knows its master", func() bool {
		conn, err := redis.Dial("tcp", replica.Addr())
		if err != nil {
			return false
		}
		defer conn.Close()
		_, err = conn.Do("CLUSTER", "REPLICATE", id(t, master))
		return err == nil
	})
	eventually(t, "the replica is in step, and all know it", func() bool {
		info, err := redis.String(replica.Do(t, "INFO", "replication"), nil)
		if err != nil || !strings.Contains(info, "master_link_status:up") {
			return false
		}
		for _, node := range cluster.Nodes {
			nodes, err := redis.String(node.Do(t, "CLUSTER", "NODES"), nil)
			if err != nil || !strings.Contains(nodes, "slave "+id(t, master)) {
				return false
			}
		}
		return true
	})
	return cluster, master, replica
}

// TestFrozenMaster lets producers enqueue, with connections of all ages, to a master that stands still until its replica takes over.
func TestFrozenMaster(t *testing.T) {
	t.Parallel()
	const queue = "{frozen}"
	cluster, master, replica := withReplica(t, queue)
	rdb, err := Dial(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	fresh, err := Dial(cluster.URL()) // knows the layout, and has no connection to the master
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	other := "a"
	for cluster.NodeOf(t, "{"+other+"}") == master {
		other += "a"
	}
	task := func() *delayed.Task { return delayed.NewGoTask("example.com/app/mail.Welcome") }
	enqueue := func(rdb *delayed.Redis, queue string) error {
		_, err := delayed.NewQueue(queue, rdb).Enqueue(context.Background(), task())
		return err
	}
	for _, err := range []error{enqueue(rdb, queue), enqueue(fresh, "{"+other+"}")} {
		if err != nil {
			t.Fatal(err)
		}
	}

	master.Pause(t)
	var mu sync.Mutex
	var serves time.Time
	var longest time.Duration
	first := map[string]time.Time{} // when each producer's first task was accepted
	var wg sync.WaitGroup
	for name, rdb := range map[string]*delayed.Redis{"one with connections": rdb, "one without": fresh} {
		wg.Go(func() {
			for {
				start := time.Now()
				err := enqueue(rdb, queue)
				end := time.Now()
				mu.Lock()
				longest = max(longest, end.Sub(start))
				if err == nil {
					first[name] = end
				}
				mu.Unlock()
				if err == nil || t.Context().Err() != nil {
					return
				}
			}
		})
	}
	eventually(t, "the replica serves", func() bool {
		info, err := redis.String(replica.Do(t, "INFO", "replication"), nil)
		if err != nil || !strings.Contains(info, "role:master") {
			return false
		}
		serves = time.Now()
		return true
	})
	wg.Wait()
	master.Resume(t)
	for name, at := range first {
		if late := at.Sub(serves); late > 2*time.Second {
			t.Errorf("%s: a task was accepted %v after the replica serves, expected 2 s at most", name, late)
		}
	}
	if longest > 5*time.Second+500*time.Millisecond {
		t.Errorf("a call took %v, expected 5 s at most", longest)
	}
}

// TestImportingNodeMayBeSlow expects that a node that imports its first slot is waited for although it serves none.
func TestImportingNodeMayBeSlow(t *testing.T) {
	t.Parallel()
	var b *fakeredis.Server
	a, b := pair(t,
		func([]string) string { return "-ASK 1 " + b.Addr() + "\r\n" },
		func(args []string) string {
			if args[0] == "GET" {
				<-time.After(slowAfter + askAgain)
			}
			return "+OK\r\n"
		})
	if reply, err := connTo(t, open(t, "redis://"+a.Addr()), "k").Do("GET", "k"); err != nil || reply != "OK" {
		t.Errorf("GET: %v, %v", reply, err)
	}
}
