package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// enqueued returns how often a task with each number is in Redis: pending, scheduled or gathered. The number is the
// task's only argument.
func (b *bench) enqueued() map[int]int {
	b.T.Helper()
	messages := b.List("")
	for _, m := range b.Hash("_tasks") {
		messages = append(messages, m)
	}
	groups, err := redis.Strings(b.Do("ZRANGE", b.Name+"_groups", 0, -1), nil)
	b.Must(err)
	for _, g := range groups {
		messages = append(messages, b.List("_group:"+g)...)
	}
	times := map[int]int{}
	for _, m := range messages {
		msg, err := parseForTest(m)
		b.Must(err)
		value, _, err := wire.DecodeAny(msg.Payload)
		b.Must(err)
		if list, ok := value.([]any); ok && len(list) == 1 {
			value = list[0]
		}
		n, ok := value.(int64)
		if !ok {
			b.T.Fatalf("the argument is %v, expected one number", value)
		}
		times[int(n)]++
	}
	return times
}

// TestProducersOfEveryKindOnABadNetwork: producers of plain, scheduled, gathered and unique tasks enqueue at once while
// replies and requests get lost. Each caller learns what happened to its own task, and of the tasks with one key there
// is one at most.
func TestProducersOfEveryKindOnABadNetwork(t *testing.T) {
	b := newBench(t)
	fn := b.fn("f", func(...int) {})
	dialer := faultnet.NewDialer(faultnet.Random(1, faultnet.Rates{DropReply: 0.1, DropRequest: 0.1}), 0)
	rdb := delayed.FromPool(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialContextFunc(dialer.DialContext))
	}})
	defer rdb.Close()
	q := delayed.NewQueue(b.Name, rdb)
	const producers, each, kinds = 64, 20, 4
	told := make([]error, producers*each)
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := range each {
				options := []delayed.Option{
					nil, delayed.In(time.Hour + time.Duration(i)*time.Minute), delayed.Group("g"),
					delayed.UniqueKey(fmt.Sprint(i), time.Hour),
				}[p%kinds]
				q := q
				if options != nil {
					q = q.With(options)
				}
				ctx, cancel := context.WithCancel(t.Context())
				if p%8 >= kinds {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i*p)*time.Microsecond)
				}
				_, told[p*each+i] = q.DelayContext(ctx, fn, p*each+i)
				cancel()
			}
		})
	}
	group.Wait()
	found, unknown := b.enqueued(), 0
	holders, refused, confirmed := map[int]int{}, map[int]bool{}, map[int]bool{}
	for id, err := range told {
		n, lock := found[id], id%each
		unique := id/each%kinds == 3
		if unique {
			holders[lock] += n
		}
		var duplicate *delayed.DuplicateError
		switch {
		case err == nil:
			if n != 1 {
				t.Errorf("task %d is there %d times, its caller was told that it is", id, n)
			}
			confirmed[lock] = confirmed[lock] || unique
		case errors.Is(err, delayed.ErrUnknown):
			if unknown++; n > 1 {
				t.Errorf("task %d is there %d times", id, n)
			}
		case unique && errors.As(err, &duplicate):
			if refused[lock] = true; n != 0 {
				t.Errorf("task %d is there, but its caller was told that another one is", id)
			}
		case !errors.Is(err, context.DeadlineExceeded) || n != 0:
			t.Errorf("task %d is there %d times, its caller was told: %v", id, n, err)
		}
	}
	for lock := range each {
		if n := holders[lock]; n > 1 || n == 0 && (refused[lock] || confirmed[lock]) {
			t.Errorf("%d tasks have the key %d, some confirmed: %v, some refused: %v", n, lock, confirmed[lock],
				refused[lock])
		}
	}
	if unknown == 0 || unknown > len(told)/2 {
		t.Errorf("%d of %d tasks are unknown, expected some", unknown, len(told))
	}
	b.Check(redistest.Invariants{})
}

// TestCloseWhileProducersEnqueue: the handle is closed while tasks of every kind wait for a connection. Each caller is
// told of it, or its task is there.
func TestCloseWhileProducersEnqueue(t *testing.T) {
	b := newBench(t)
	fn := b.fn("f", func(...int) {})
	rdb, err := delayed.Dial(b.Server.URL())
	b.Must(err)
	q := delayed.NewQueue(b.Name, rdb)
	queues := []*delayed.Queue{
		q, q.With(delayed.In(time.Hour)), q.With(delayed.Group("g")), q.With(delayed.Front()),
	}
	const producers = 32
	told := make([]error, producers)
	accepted := make([]map[int]bool, producers)
	var some, group sync.WaitGroup
	some.Add(producers)
	for p := range producers {
		accepted[p] = map[int]bool{}
		group.Go(func() {
			for i := p; told[p] == nil; i += producers {
				if _, told[p] = queues[p%len(queues)].Delay(fn, i); told[p] == nil {
					accepted[p][i] = true
				}
				if i == p {
					some.Done()
				}
			}
		})
	}
	some.Wait()
	b.Must(rdb.Close())
	group.Wait()
	found := b.enqueued()
	for p, err := range told {
		unknown := errors.Is(err, delayed.ErrUnknown)
		if !errors.Is(err, delayed.ErrClosed) && !unknown {
			t.Errorf("producer %d: %v, expected ErrClosed", p, err)
		}
		for i := range accepted[p] {
			if found[i] != 1 {
				t.Errorf("task %d is there %d times, its caller was told that it is", i, found[i])
			}
			delete(found, i)
		}
		if last := p + producers*len(accepted[p]); found[last] == 1 && unknown {
			delete(found, last)
		}
	}
	if len(found) > 0 {
		t.Errorf("tasks are there, but their callers were told that nothing was sent: %v", found)
	}
}
