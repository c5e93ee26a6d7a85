//go:build unix

package rediscluster

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// gathered is the function of grouped tasks.
func gathered(...int) {}

// testProducers lets the slot of a queue travel while producers of every kind share calls: each task is there once, and
// of the two with the same key exactly one.
func testProducers(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	rdb, err := Dial(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	const queue, producers, each, moves, groups = "{produced}", 32, 40, 4, 3
	q := delayed.NewQueue(queue, rdb)
	enqueue := []func(n int) error{
		func(n int) error { _, err := q.Delay(countRun, n); return err },
		func(n int) error { _, err := q.With(delayed.In(time.Hour)).Delay(countRun, n); return err },
		func(n int) error {
			_, err := q.With(delayed.Group(fmt.Sprint("g", n%groups))).Delay(gathered, n)
			return err
		},
		func(n int) error {
			_, err := q.With(delayed.UniqueKey(fmt.Sprint(n/2), time.Hour)).Delay(countRun, n)
			return err
		},
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	duplicates := 0
	for p := range producers {
		all.Go(func() {
			for i := range each {
				kind := p % len(enqueue)
				// Two producers of a kind have numbers beside each other, at the same time.
				err := enqueue[kind](2*(p/len(enqueue)/2*each+i) + p/len(enqueue)%2)
				var duplicate *delayed.DuplicateError
				if kind == 3 && errors.As(err, &duplicate) {
					mu.Lock()
					duplicates++
					mu.Unlock()
				} else if err != nil {
					t.Errorf("producer %d: %v", p, err)
					return
				}
			}
		})
	}
	for range moves {
		currentOwner(t, cluster, queue).all(t)
	}
	all.Wait()
	const ofAKind = producers / 4 * each
	if duplicates != ofAKind/2 {
		t.Errorf("%d duplicates, expected %d", duplicates, ofAKind/2)
	}
	c := connTo(t, open(t, cluster.URL()), queue)
	size := func(cmd, key string) (n int) {
		n, err := redis.Int(c.Do(cmd, key))
		if err != nil {
			t.Errorf("%s %s: %v", cmd, key, err)
		}
		return n
	}
	members := 0
	names, err := redis.Strings(c.Do("ZRANGE", queue+"_groups", 0, -1))
	if err != nil || len(names) != groups {
		t.Errorf("groups %q, %v, expected %d", names, err, groups)
	}
	for _, g := range names {
		members += size("LLEN", queue+"_group:"+g)
	}
	pending, scheduled := size("LLEN", queue), size("ZCARD", queue+"_scheduled")
	if pending != ofAKind+ofAKind/2 || scheduled != ofAKind || members != ofAKind {
		t.Errorf("%d pending, %d scheduled, %d gathered, expected %d, %d and %d", pending, scheduled, members,
			ofAKind+ofAKind/2, ofAKind, ofAKind)
	}
	owner := currentOwner(t, cluster, queue).from
	redistest.CheckInvariants(t, owner.Dial(t), queue, redistest.Invariants{})
}
