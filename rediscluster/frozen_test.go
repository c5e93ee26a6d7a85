//go:build unix

package rediscluster

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestFrozenMaster lets producers enqueue, with connections of all ages, to a master that stands still until its
// replica takes over, and long after that.
func TestFrozenMaster(t *testing.T) {
	t.Parallel()
	const queue = "{frozen}"
	cluster := redistest.StartCluster(t)
	master := cluster.NodeOf(t, queue)
	replica := replicaOf(t, cluster, master)
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
	background := context.Background() //nolint:usetesting // cannot end, as most callers' contexts
	task := func() *delayed.Task { return delayed.NewGoTask("example.com/app/mail.Welcome") }
	enqueue := func(rdb *delayed.Store, queue string) error {
		_, err := delayed.NewQueue(queue, rdb).Enqueue(background, task())
		return err
	}
	for _, err := range []error{enqueue(rdb, queue), enqueue(fresh, "{"+other+"}")} {
		if err != nil {
			t.Fatal(err)
		}
	}

	master.Pause(t)
	var mu sync.Mutex
	var longest time.Duration
	first := map[string]time.Time{} // when each producer's first task was accepted
	var wg sync.WaitGroup
	began := time.Now()
	for name, rdb := range map[string]*delayed.Store{"one with connections": rdb, "one without": fresh} {
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
				if err == nil {
					return
				}
				if end.Sub(began) > patience {
					t.Errorf("%s: no task is accepted: %v", name, err)
					return
				}
			}
		})
	}
	replica.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER")
	serves := time.Now()
	wg.Wait()
	master.Resume(t)
	for name, at := range first {
		if late := at.Sub(serves); late > 2*time.Second {
			limits.Errorf(t, "%s: a task was accepted %v after the replica serves, expected 2 s at most", name, late)
		}
	}
	if longest > 5*time.Second+500*time.Millisecond {
		limits.Errorf(t, "a call took %v, expected 5 s at most", longest)
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
