package delayed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// soon gathers until nothing has come for a moment.
var soon = Gather(GatherPolicy{Grace: 50 * time.Millisecond})

// whenFull gathers n calls, however long it takes.
func whenFull(n int) TaskOption { return Gather(GatherPolicy{Grace: time.Hour, MaxSize: n}) }

// indexed is a function that can be gathered; what it is called with goes to calls.
func (b *bench) indexed(name string) (fn *Function, calls chan string) {
	calls = make(chan string, 1000)
	return b.fn(name, func(tenant string, ids ...int) { calls <- fmt.Sprint(tenant, ids) }), calls
}

func TestGroupRunsAsOneCall(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	q := b.q.With(Group("k"), soon)
	first := b.delayWith(q, index, "a", 1, 2)
	b.delayWith(q, index, "b", 7)
	b.delayWith(q, index, "a")
	if _, err := q.DelayMany(t.Context(), Call(index, "a", 3), Call(index, "b", 8), Call(index, "a", 4),
		NewGoTask(index.f.Path(), "a", []int{5, 6})); err != nil {
		t.Fatal(err)
	}
	if n := b.Size("_groups"); n != 2 || b.Size("") != 0 {
		t.Errorf("%d groups, %d pending tasks, expected 2 and none", n, b.Size(""))
	}
	ids := make(chan string, 2)
	w, err := NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	err = w.Use(func(next HandlerFunc) HandlerFunc {
		return func(ctx context.Context, t *Task) error {
			if t.ID() == first.ID() {
				ids <- t.ID()
			}
			return next(ctx, t)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(index); err != nil {
		t.Fatal(err)
	}
	b.start(w)
	got := []string{await(b, "the first group", calls), await(b, "the second group", calls)}
	if slices.Sort(got); !slices.Equal(got, []string{"a[1 2 3 4 5 6]", "b[7 8]"}) {
		t.Errorf("called with %q", got)
	}
	await(b, "the task with the id of the first call", ids)
	b.Idle()
	b.Check(redistest.Invariants{})
}

func TestGroupFiresWhenFull(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	b.work(b.config(), index)
	q := b.q.With(Group("k"), whenFull(3))
	for i := range 7 {
		b.delayWith(q, index, "a", i)
	}
	got := []string{await(b, "the first call", calls), await(b, "the second call", calls)}
	if slices.Sort(got); !slices.Equal(got, []string{"a[0 1 2]", "a[3 4 5]"}) {
		t.Errorf("called with %q", got)
	}
	if left := b.List("_group:" + b.groupNames()[0]); len(left) != 1 {
		t.Errorf("%d calls wait on, expected one", len(left))
	}
}

// groupNames are the names of the groups that wait.
func (b *bench) groupNames() []string {
	b.T.Helper()
	names, err := redis.Strings(b.Conn.Do("ZRANGE", b.Name+"_groups", 0, -1))
	if err != nil {
		b.T.Fatal(err)
	}
	return names
}

func TestGroupFiresAtItsMaxDelay(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	w, err := NewWorker(b.rdb, b.config())
	b.Must(err)
	b.Must(w.Register(index))
	w.engine.Groups[0].Mover.Every = time.Hour // so that it must be woken
	b.start(w)
	b.Until("the mover has looked", func() bool { return w.engine.Groups[0].Mover.Looked.Load() })
	q := b.q.With(Group("k"), Gather(GatherPolicy{Grace: time.Hour, MaxDelay: 200 * time.Millisecond}))
	start := time.Now()
	if _, err := q.DelayMany(t.Context(), Call(index, "a", 1), Call(index, "a", 2)); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the call", calls); got != "a[1 2]" {
		t.Errorf("called with %s", got)
	}
	// A little earlier is possible because times are whole milliseconds.
	if took := time.Since(start); took < 198*time.Millisecond {
		t.Errorf("called after %v, expected 200 ms", took)
	}
}

// TestGroupOfAnUnknownFunction is put together by a worker that does not know the function, and parked.
func TestGroupOfAnUnknownFunction(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	b.work(b.config())
	q := b.q.With(Group("k"), whenFull(2))
	b.delayWith(q, index, "a", 1)
	b.delayWith(q, index, "a", 2)
	b.Until("the call is parked", func() bool { return b.Size("_parked") == 1 })
	b.work(b.config(), index)
	if got := await(b, "the call", calls); got != "a[1 2]" {
		t.Errorf("called with %s", got)
	}
}

// TestGarbageInGroup is archived, and what stands around it is called.
func TestGarbageInGroup(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	q := b.q.With(Group("k"), soon)
	b.delayWith(q, index, "a", 1)
	b.Do("RPUSH", b.Name+"_group:"+b.groupNames()[0], "garbage")
	b.delayWith(q, index, "a", 2)
	b.Do("ZADD", b.Name+"_groups", 1, "nothing")
	b.Do("HSET", b.Name+"_gathered", "nothing", "1 2 3 4 5 6")
	b.Do("ZADD", b.Name+"_groups", 1, "wrong")
	b.Do("HSET", b.Name+"_group:wrong", "a", "hash")
	b.work(b.config(), index)
	got := []string{await(b, "a call", calls), await(b, "another", calls)}
	if slices.Sort(got); !slices.Equal(got, []string{"a[1]", "a[2]"}) {
		t.Errorf("called with %q", got)
	}
	b.Until("the garbage is archived", func() bool { return b.Size("_archived") == 1 })
	if groups := b.groupNames(); !slices.Equal(groups, []string{"wrong"}) {
		t.Errorf("groups %q, expected the one that cannot be read", groups)
	}
	if !strings.Contains(b.log.String(), "cannot be put together") {
		t.Errorf("nothing is logged:\n%s", b.log)
	}
	b.Do("ZREM", b.Name+"_groups", "wrong")
	b.Do("UNLINK", b.Name+"_group:wrong")
}

// TestGroupsSurviveDeaths gathers 10,000 calls in 50 groups and fires them by movers that die at any moment, over
// connections that break before and after Redis did its work. Every argument arrives exactly once, except those of
// which the producer does not know.
func TestGroupsSurviveDeaths(t *testing.T) {
	const tenants, batches, batch, movers = 50, 20, 10, 4
	b := newBenchOn(t, redistest.Start(t))
	seed := rand.Uint64()
	dialer := faultnet.NewDialer(faultnet.Random(seed, faultnet.Rates{DropReply: 0.05, DropRequest: 0.05, Delay: 0.1}),
		time.Millisecond)
	faulty := FromPool(b.Server.Pool(t, redis.DialContextFunc(dialer.DialContext)))
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
				m := engine.NewMover(faulty.loops,
					[]*engine.Lane{engine.NewLane(redisstore.NewStore(faulty.loops, "", b.Name), "w", false)},
					loop.NewJournal(b.log.logger()))
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
	q := NewQueue(b.Name, faulty).With(Group("k"), Gather(GatherPolicy{Grace: 3 * time.Millisecond, MaxSize: 7}))
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
			_, err := q.DelayMany(t.Context(), tasks...)
			if err != nil && !errors.Is(err, ErrUnknown) {
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
	for _, msg := range b.pending() {
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
	b := newBench(t)
	index, _ := b.indexed("index")
	for g := range 50 {
		for i := range 20 {
			b.delayWith(b.q.With(Group("k"), Gather(GatherPolicy{Grace: time.Millisecond, MaxSize: 3})), index,
				fmt.Sprint(g), i)
		}
	}
	var all sync.WaitGroup
	for range 8 {
		m := engine.NewMover(b.rdb.loops,
			[]*engine.Lane{engine.NewLane(redisstore.NewStore(b.rdb.loops, "", b.Name), "w", false)},
			loop.NewJournal(b.log.logger()))
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

// groupNamesOn is groupNames over a source: the bench's connection is for one goroutine.
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

func TestGroupsAreListed(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	if groups, err := b.q.Groups(ctx); err != nil || len(groups) > 0 {
		t.Errorf("an empty queue has the groups %v, %v", groups, err)
	}
	index, _ := b.indexed("index")
	b.delayWith(b.q.With(Group("k"), Gather(GatherPolicy{Grace: 2 * time.Hour})), index, "a", 1)
	ref := b.delayWith(b.q.With(Group("k"), Gather(GatherPolicy{Grace: 2 * time.Hour})), index, "a", 2)
	b.delayWith(b.q.With(Group("l"), Gather(GatherPolicy{Grace: time.Hour})), index, "a", 3)
	b.Do("ZADD", b.Name+"_groups", later, "gone")
	b.Do("ZADD", b.Name+"_groups", round, "odd")
	b.Do("RPUSH", b.Name+"_group:odd", "garbage")
	groups, err := b.q.Groups(ctx)
	if err != nil || len(groups) != 3 {
		t.Fatalf("%v, %v, expected three groups", groups, err)
	}
	for i, want := range []GroupInfo{
		{"l", index.f.Path(), 1, time.Now().Add(time.Hour)},
		{"k", index.f.Path(), 2, time.Now().Add(2 * time.Hour)},
		{"", "", 1, time.UnixMilli(round)},
	} {
		off := groups[i].Due.Sub(want.Due)
		if want.Due = groups[i].Due; groups[i] != want || off.Abs() > time.Minute {
			t.Errorf("%+v, expected %+v; due %v later", groups[i], want, off)
		}
	}
	for id, want := range map[string]State{ref.ID(): StateAggregating, "another": StateUnknown} {
		if state, err := b.q.Ref(id).State(ctx); err != nil || state != want {
			t.Errorf("%s is %v, %v, expected %v", id, state, err, want)
		}
		if info, err := b.q.Ref(id).Info(ctx); err != nil || info.State != want ||
			(info.Function == index.f.Path()) != (want == StateAggregating) {
			t.Errorf("%s: %+v, %v", id, info, err)
		}
	}
	b.Do("DEL", b.Name+"_groups", b.Name+"_group:odd")
	b.Do("SET", b.Name+"_groups", "another type")
	if _, err := b.q.Groups(ctx); err == nil {
		t.Error("a key of another type gave no error")
	}
}

// TestScheduledCallsJoinTheirGroup gathers calls when they are due, also with a worker that does not know the function,
// and with others that are not scheduled.
func TestScheduledCallsJoinTheirGroup(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	b.work(b.config())
	q := b.q.With(Group("k"), whenFull(5))
	b.delayWith(q.With(At(time.Now())), index, "a", 1)
	b.delayWith(q.With(In(50*time.Millisecond)), index, "a", 2)
	if _, err := q.With(In(20*time.Millisecond)).DelayMany(t.Context(), Call(index, "a", 3),
		Call(index, "a", 4)); err != nil {
		t.Fatal(err)
	}
	b.Until("four calls wait in the group", func() bool {
		groups, err := b.q.Groups(t.Context())
		return err == nil && len(groups) == 1 && groups[0].Size == 4
	})
	b.delayWith(q, index, "a", 5)
	b.work(b.config(), index)
	got := await(b, "the call", calls)
	words := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(got))
	if slices.Sort(words); strings.Join(words, " ") != "1 2 3 4 5 a" {
		t.Errorf("called with %s", got)
	}
	b.Idle()
	if n := b.Size("_scheduled") + b.Size("_parked") + b.Size("_groups"); n > 0 {
		t.Errorf("%d tasks are left", n)
	}
	b.Check(redistest.Invariants{})
}

// TestLoneCallThatCannotBeGathered runs alone, rather than to come back again and again.
func TestLoneCallThatCannotBeGathered(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 1)
	b.work(b.config(), b.fn("one", func(n int) { ran <- n }))
	m := wire.Message{
		Kind: wire.GoExtended, Path: b.Name + ".one", Payload: []byte{7},
		Meta: wire.Meta{Extra: &wire.Extra{Group: "k"}},
	}
	if err := b.q.store.Enqueue(t.Context(), []redisstore.Envelope{{ID: "", Message: m.Append(nil)}}); err != nil {
		t.Fatal(err)
	}
	if n := await(b, "the call", ran); n != 7 {
		t.Errorf("called with %d", n)
	}
}

// A mover that was lent a group and could not reach Redis makes its call with the next look: nobody else would before
// the loan is over.
func TestLentGroupIsTriedAgain(t *testing.T) {
	r := newReceiver(t, nil)
	index, _ := r.b.indexed("index")
	r.b.delayWith(r.b.q.With(Group("k"), Gather(GatherPolicy{Grace: time.Millisecond})), index, "a", 1)
	m := r.engine.Groups[0].Mover
	r.b.Until("the group is due", func() bool {
		lent, _, err := r.l.Store.Ripe(t.Context(), redisstore.MaxRipe, time.Hour)
		r.b.Must(err)
		m.Lent[0] = lent
		return len(lent) == 1
	})
	if _, err := m.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.b.Size(""); n != 1 || len(m.Lent[0]) > 0 {
		t.Errorf("%d calls are pending, %q is lent still", n, m.Lent[0])
	}
}
