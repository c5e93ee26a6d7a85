package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/engine/move"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// gather enqueues calls of one group whose last argument grows.
func (q *Queue) gather(ctx context.Context, how wire.Gather, tasks ...*Task) error {
	how.Fixed = 1
	if how.MaxSize == 0 {
		how.MaxSize = 1000
	}
	members := make([]group.Member, len(tasks))
	for i, task := range tasks {
		task.msg.Extend()
		task.msg.Meta.Extra = &wire.Extra{Group: "k", Gather: &how}
		e, err := task.envelope()
		if err == nil {
			members[i], err = group.NewMember(e.Message)
		}
		if err != nil {
			return err
		}
	}
	_, err := q.store.Gather(ctx, members)
	return err
}

// A mover that was lent a group and could not reach Redis makes its call with the next look: nobody else would before
// the loan is over.
func TestLentGroupIsTriedAgain(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.b.Must(r.b.q.gather(t.Context(), wire.Gather{Grace: 1}, Call(r.b.fn("index", func(string, ...int) {}), "a", 1)))
	m := r.slotGroups[0].mover
	r.b.Until("the group is due", func() bool {
		lent, _, err := r.l.Store.Ripe(t.Context(), redisstore.MaxRipe, time.Hour)
		r.b.Must(err)
		m.Lent[0] = lent
		return len(lent) == 1
	})
	if _, err := m.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.b.Size(""); n != 1 || len(m.Lent[0]) > 0 {
		t.Errorf("%d calls are pending, %q is lent still", n, m.Lent[0])
	}
}

func TestGroupFiresAtItsMaxDelay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	calls := make(chan string, 10)
	index := b.fn("index", func(tenant string, ids ...int) { calls <- fmt.Sprint(tenant, ids) })
	w, err := NewWorker(b.rdb, b.config())
	b.Must(err)
	b.Must(w.Register([]*Function{index}, nil))
	w.slotGroups[0].mover.Every = time.Hour // so that it must be woken
	b.start(w)
	b.Until("the mover has looked", func() bool { return w.slotGroups[0].mover.Checked.Load() })
	start := time.Now()
	b.Must(b.q.gather(t.Context(), wire.Gather{Grace: time.Hour.Milliseconds(), MaxDelay: 200}, Call(index, "a", 1),
		Call(index, "a", 2)))
	if got := await(b, "the call", calls); got != "a[1 2]" {
		t.Errorf("called with %s", got)
	}
	// A little earlier is possible because times are whole milliseconds.
	if took := time.Since(start); took < 198*time.Millisecond {
		t.Errorf("called after %v, expected 200 ms", took)
	}
}

// MaxDelay of the calls that a full group leaves behind begins when the first of them was made.
func TestCallsBehindAFullGroupHaveTheirOwnMaxDelay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	how := wire.Gather{Grace: time.Hour.Milliseconds(), MaxDelay: time.Minute.Milliseconds(), MaxSize: 2}
	index := b.fn("index", func(string, ...int) {})
	b.Must(b.q.gather(t.Context(), how, Call(index, "a", 1), Call(index, "a", 2), Call(index, "a", 3)))
	// As if the first of them had been made an hour ago.
	for name, state := range b.Hash("_gathered") {
		since, rest, _ := strings.Cut(state, " ")
		at, err := strconv.ParseInt(since, 10, 64)
		b.Must(err)
		b.Do("HSET", b.Name+"_gathered", name, fmt.Sprint(at-time.Hour.Milliseconds(), " ", rest))
	}
	next, err := b.mover(b.rdb.loops).Fire(t.Context(), 0)
	b.Must(err)
	if n := b.Size("_groups"); b.Size("") != 1 || n != 1 || next <= 0 || next > time.Minute {
		t.Errorf("%d calls were made, %d groups wait, the next for %v: expected one call of the full group, and that "+
			"the third call waits for up to a minute", b.Size(""), n, next)
	}
}

// TestGroupsSurviveDeaths gathers 4,000 calls in 50 groups and fires them by movers that die at any moment, over
// connections that break before and after Redis did its work. Every argument arrives exactly once, except those of
// which the producer does not know.
func TestGroupsSurviveDeaths(t *testing.T) {
	t.Parallel()
	const tenants, batches, batch, movers = 50, 8, 10, 4
	b := newBenchOn(t, redistest.Start(t))
	seed := rand.Uint64()
	dialer := faultnet.NewDialer(faultnet.Random(seed, faultnet.Rates{DropReply: 0.05, DropRequest: 0.05, Delay: 0.1}),
		time.Millisecond)
	faulty := FromSource(redisstore.PoolSource{Pool: b.Server.Pool(t, redis.DialContextFunc(dialer.DialContext))})
	index := b.fn("index", func(string, ...int) {})
	var all sync.WaitGroup
	var deaths atomic.Int64
	gathered := make(chan struct{})
	for i := range movers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for over := false; !over; {
				select {
				case <-gathered:
					over = len(b.groupNamesOn(b.rdb.loops)) == 0
				default:
				}
				m := b.mover(faulty.loops)
				m.Loan = 10 * time.Millisecond
				ctx, die := context.WithTimeout(t.Context(), time.Duration(r.IntN(20_000))*time.Microsecond)
				for ctx.Err() == nil {
					if next, err := m.Fire(ctx, 0); err == nil && next != 0 {
						break
					}
				}
				if ctx.Err() != nil {
					deaths.Add(1)
				}
				die()
			}
		})
	}
	q := NewQueue(b.Name, faulty)
	want, unknown := map[string]map[int]bool{}, 0 // true: certainly sent
	for i := range batches {
		for tenant := range tenants {
			name := fmt.Sprint(tenant)
			if want[name] == nil {
				want[name] = map[int]bool{}
			}
			var tasks []*Task
			for k := range batch {
				tasks = append(tasks, Call(index, name, i*batch+k))
			}
			err := q.gather(t.Context(), wire.Gather{Grace: 3, MaxSize: 7}, tasks...)
			if err != nil && !errors.Is(err, redisstore.ErrUnknown) {
				t.Error(err)
			}
			for k := range batch {
				want[name][i*batch+k] = err == nil
			}
			if err != nil {
				unknown++
			}
		}
	}
	close(gathered)
	all.Wait()
	dialer.SetPlan(nil)
	got := b.gatheredArgs(7)
	for tenant, sent := range want {
		for id, certain := range sent {
			if n := got[tenant][id]; n > 1 || n == 0 && certain {
				t.Errorf("seed %d: group %s: argument %d arrived %d times; certainly sent: %v", seed, tenant, id, n,
					certain)
			}
		}
	}
	t.Logf("seed %d: %v; %d movers died, %d tasks were made of %d calls, of %d batches nobody knows", seed,
		dialer.Counts(), deaths.Load(), b.Size(""), tenants*batches*batch, unknown)
	if counts := dialer.Counts(); counts.DroppedReplies < 20 || deaths.Load() < 20 {
		t.Errorf("too few faults to prove anything: %v, %d deaths", counts, deaths.Load())
	}
	b.Check(redistest.Invariants{})
}

// gatheredArgs says how often each id of each tenant is among the arguments of the pending tasks, which are made of at
// most size calls of one id each.
func (b *bench) gatheredArgs(size int) map[string]map[int]int {
	b.T.Helper()
	got := map[string]map[int]int{}
	ids := map[string]bool{}
	for _, text := range b.List("") {
		msg, err := wire.Parse([]byte(text), wire.WorkerLimits)
		b.Must(err)
		values, _, err := wire.DecodeAny(msg.Payload)
		args, _ := values.([]any)
		if err != nil || len(args) != 2 || ids[msg.Meta.ID] {
			b.T.Fatalf("%s %x: %v", msg.Meta.ID, msg.Payload, err)
		}
		ids[msg.Meta.ID] = true
		tenant, _ := args[0].(string)
		list, _ := args[1].([]any)
		if len(list) > size {
			b.T.Errorf("%d calls in one", len(list))
		}
		if got[tenant] == nil {
			got[tenant] = map[int]int{}
		}
		for _, id := range list {
			n, _ := id.(int64)
			got[tenant][int(n)]++
		}
	}
	return got
}

// TestFiringIsShared fires many groups by many movers at once.
func TestFiringIsShared(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	index := b.fn("index", func(string, ...int) {})
	for g := range 50 {
		for i := range 20 {
			b.Must(b.q.gather(t.Context(), wire.Gather{Grace: 1, MaxSize: 3}, Call(index, fmt.Sprint(g), i)))
		}
	}
	var all sync.WaitGroup
	for range 8 {
		m := b.mover(b.rdb.loops)
		all.Go(func() {
			for len(b.groupNamesOn(m.Src)) > 0 {
				if _, err := m.Fire(t.Context(), 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	got := b.gatheredArgs(3)
	for g := range 50 {
		for i := range 20 {
			if n := got[fmt.Sprint(g)][i]; n != 1 {
				t.Errorf("group %d: argument %d arrived %d times", g, i, n)
			}
		}
	}
	b.Check(redistest.Invariants{})
}

// groupNamesOn are the names of the groups that wait, over a source: the bench's connection is for one goroutine.
func (b *bench) groupNamesOn(src Source) []string {
	conn, err := redisstore.Connect(context.Background(), src, b.Name)
	if err != nil {
		b.T.Error(err)
		return nil
	}
	defer conn.Close()
	names, err := redis.Strings(conn.Do("ZRANGE", b.Name+"_groups", 0, -1))
	if err != nil {
		b.T.Error(err)
	}
	return names
}

// mover returns a mover of the queue.
func (b *bench) mover(src Source) *move.Mover {
	l := lane.New(redisstore.NewStore(src, "", b.Name), "w", false)
	return move.New(src, []*lane.Lane{l}, loop.NewJournal(b.log.logger()))
}
