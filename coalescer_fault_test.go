package delayed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// TestProducersOnABadNetwork: many producers enqueue at once while replies and requests get lost. Each caller learns
// what happened to its own task.
func TestProducersOnABadNetwork(t *testing.T) {
	b := newBench(t)
	b.Server.Do(t, "SCRIPT", "LOAD", redisstore.ScriptEnqueue.Source)
	dialer := faultnet.NewDialer(faultnet.Random(1, faultnet.Rates{DropReply: 0.1, DropRequest: 0.1}), 0)
	rdb := delayed.FromPool(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialContextFunc(dialer.DialContext))
	}})
	defer rdb.Close()
	q := delayed.NewQueue(b.Name, rdb)
	const producers, each = 64, 50
	var mu sync.Mutex
	confirmed, unknown := map[int]bool{}, 0
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := range each {
				id := p*each + i
				ctx, cancel := context.WithCancel(t.Context())
				if p%2 == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i*p)*time.Microsecond)
				}
				_, err := q.DelayContext(ctx, plainForTest, id)
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					confirmed[id] = true
				case errors.Is(err, delayed.ErrUnknown):
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
	seen := map[int]int{}
	last := map[int]int{}
	for _, m := range b.pending() {
		value, _, err := wire.DecodeAny(m.Payload)
		if err != nil {
			t.Fatal(err)
		}
		number, _ := value.(int64)
		id := int(number)
		seen[id]++
		if _, sent := confirmed[id]; !sent {
			t.Errorf("task %d is there, but its caller was told that nothing was sent", id)
		}
		p, i := id/each, id%each
		if n, ok := last[p]; ok && confirmed[id] && i <= n {
			t.Errorf("producer %d: task %d is behind task %d", p, i, n)
		} else if confirmed[id] {
			last[p] = i
		}
	}
	for id, sure := range confirmed {
		if n := seen[id]; n > 1 || sure && n == 0 {
			t.Errorf("task %d is there %d times, confirmed: %v", id, n, sure)
		}
	}
	if len(confirmed) == unknown || unknown == 0 {
		t.Errorf("%d tasks, %d of them unknown: expected some of either kind", len(confirmed), unknown)
	}
	b.Check(redistest.Invariants{})
}
