package delayed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestProducersOnABadNetwork: many producers at once, and replies and requests get lost. Everyone knows about its own task.
func TestProducersOnABadNetwork(t *testing.T) {
	b := newBench(t)
	b.server.Do(t, "SCRIPT", "LOAD", scriptEnqueue.source)
	dialer := faultnet.NewDialer(faultnet.Random(1, faultnet.Rates{DropReply: 0.1, DropRequest: 0.1}), 0)
	rdb := FromPool(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", b.server.Addr(), redis.DialContextFunc(dialer.DialContext))
	}})
	defer rdb.Close()
	q := NewQueue(b.name, rdb)
	const producers, each = 64, 50
	var mu sync.Mutex
	confirmed, unknown := map[string]bool{}, 0
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := range each {
				id := fmt.Sprint(p, "-", i)
				ctx, cancel := context.WithCancel(t.Context())
				if p%2 == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i*p)*time.Microsecond)
				}
				_, err := q.With(TaskID(id)).DelayContext(ctx, plainForTest, i)
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					confirmed[id] = true
				case errors.Is(err, ErrUnknown):
					unknown++
					confirmed[id] = false
				case !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	seen := map[string]int{}
	last := map[string]int{}
	for _, m := range b.pending() {
		id := m.Meta.ID
		seen[id]++
		if _, sent := confirmed[id]; !sent {
			t.Errorf("task %s is there, but its caller was told that nothing was sent", id)
		}
		p, i := "", 0
		if _, err := fmt.Sscanf(strings.ReplaceAll(id, "-", " "), "%s %d", &p, &i); err != nil {
			t.Fatal(err)
		}
		if n, ok := last[p]; ok && confirmed[id] && i <= n {
			t.Errorf("producer %s: task %d is behind task %d", p, i, n)
		} else if confirmed[id] {
			last[p] = i
		}
	}
	for id, sure := range confirmed {
		if n := seen[id]; n > 1 || sure && n == 0 {
			t.Errorf("task %s is there %d times, confirmed: %v", id, n, sure)
		}
	}
	if len(confirmed) == unknown || unknown == 0 {
		t.Errorf("%d tasks, %d of them unknown: expected some of either kind", len(confirmed), unknown)
	}
	b.check(redistest.Invariants{})
}
