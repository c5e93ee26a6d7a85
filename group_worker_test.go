package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// soon gathers until no call has come for a moment.
var soon = delayed.Gather(delayed.GatherPolicy{Grace: 50 * time.Millisecond})

// whenFull gathers n calls, however long it takes.
func whenFull(n int) delayed.TaskOption {
	return delayed.Gather(delayed.GatherPolicy{Grace: time.Hour, MaxSize: n})
}

// groups returns the groups of the queue that wait for more calls, those that are due first in front.
func (b *bench) groups() ([]inspect.Group, error) {
	b.T.Helper()
	ins, err := inspect.New(b.rdb, inspect.Config{})
	b.Must(err)
	return ins.Groups(b.T.Context(), b.Name)
}

// indexed returns a function that can be gathered; it sends its arguments to calls.
func (b *bench) indexed(name string) (fn *delayed.Function, calls chan string) {
	calls = make(chan string, 1000)
	return b.fn(name, func(tenant string, ids ...int) { calls <- fmt.Sprint(tenant, ids) }), calls
}

func TestGroupRunsAsOneCall(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	q := b.q.With(delayed.Group("k"), soon)
	first := b.delayWith(q, index, "a", 1, 2)
	b.delayWith(q, index, "b", 7)
	b.delayWith(q, index, "a")
	if _, err := q.DelayMany(t.Context(), delayed.Call(index, "a", 3), delayed.Call(index, "b", 8),
		delayed.Call(index, "a", 4),
		delayed.NewGoTask(b.Name+".index", "a", []int{5, 6})); err != nil {
		t.Fatal(err)
	}
	if n := b.Size("_groups"); n != 2 || b.Size("") != 0 {
		t.Errorf("%d groups, %d pending tasks, expected 2 and none", n, b.Size(""))
	}
	ids := make(chan string, 2)
	w, err := delayed.NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	err = w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
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
	q := b.q.With(delayed.Group("k"), whenFull(3))
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

// groupNames returns the names of the groups that wait.
func (b *bench) groupNames() []string {
	b.T.Helper()
	names, err := redis.Strings(b.Conn.Do("ZRANGE", b.Name+"_groups", 0, -1))
	if err != nil {
		b.T.Fatal(err)
	}
	return names
}

// TestGroupOfAnUnknownFunction: a worker that does not know the function combines the calls and parks the result.
func TestGroupOfAnUnknownFunction(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	b.work(b.config())
	q := b.q.With(delayed.Group("k"), whenFull(2))
	b.delayWith(q, index, "a", 1)
	b.delayWith(q, index, "a", 2)
	b.Until("the call is parked", func() bool { return b.Size("_parked") == 1 })
	b.work(b.config(), index)
	if got := await(b, "the call", calls); got != "a[1 2]" {
		t.Errorf("called with %s", got)
	}
}

// TestGarbageInGroup: bytes that are not a message are archived, and the calls around them run.
func TestGarbageInGroup(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	q := b.q.With(delayed.Group("k"), soon)
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

func TestGroupsAreListed(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	if groups, err := b.groups(); err != nil || len(groups) > 0 {
		t.Errorf("an empty queue has the groups %v, %v", groups, err)
	}
	index, _ := b.indexed("index")
	b.delayWith(b.q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: 2 * time.Hour})), index, "a", 1)
	ref := b.delayWith(b.q.With(delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: 2 * time.Hour})), index,
		"a", 2)
	b.delayWith(b.q.With(delayed.Group("l"), delayed.Gather(delayed.GatherPolicy{Grace: time.Hour})), index, "a", 3)
	b.Do("ZADD", b.Name+"_groups", later, "gone")
	b.Do("ZADD", b.Name+"_groups", round, "odd")
	b.Do("RPUSH", b.Name+"_group:odd", "garbage")
	groups, err := b.groups()
	if err != nil || len(groups) != 3 {
		t.Fatalf("%v, %v, expected three groups", groups, err)
	}
	for i, want := range []inspect.Group{
		{Key: "l", Function: b.Name + ".index", Size: 1, Due: time.Now().Add(time.Hour)},
		{Key: "k", Function: b.Name + ".index", Size: 2, Due: time.Now().Add(2 * time.Hour)},
		{Size: 1, Due: time.UnixMilli(round)},
	} {
		want.Queue = b.Name
		off := groups[i].Due.Sub(want.Due)
		if want.Due = groups[i].Due; groups[i] != want || off.Abs() > time.Minute {
			t.Errorf("%+v, expected %+v; due %v later", groups[i], want, off)
		}
	}
	for id, want := range map[string]state.Task{ref.ID(): state.Aggregating, "another": state.Unknown} {
		if state, err := b.q.Ref(id).State(ctx); err != nil || state != want {
			t.Errorf("%s is %v, %v, expected %v", id, state, err, want)
		}
		if info, err := b.q.Ref(id).Info(ctx); err != nil || info.State != want ||
			(info.Function == b.Name+".index") != (want == state.Aggregating) {
			t.Errorf("%s: %+v, %v", id, info, err)
		}
	}
	b.Do("DEL", b.Name+"_groups", b.Name+"_group:odd")
	b.Do("SET", b.Name+"_groups", "another type")
	if _, err := b.groups(); err == nil {
		t.Error("a key of another type gave no error")
	}
}

// TestScheduledCallsJoinTheirGroup: scheduled calls join their group when they are due, together with unscheduled ones,
// even on a worker that does not know the function.
func TestScheduledCallsJoinTheirGroup(t *testing.T) {
	b := newBench(t)
	index, calls := b.indexed("index")
	b.work(b.config())
	q := b.q.With(delayed.Group("k"), whenFull(5))
	b.delayWith(q.With(delayed.At(time.Now())), index, "a", 1)
	b.delayWith(q.With(delayed.In(50*time.Millisecond)), index, "a", 2)
	if _, err := q.With(delayed.In(20*time.Millisecond)).DelayMany(t.Context(), delayed.Call(index, "a", 3),
		delayed.Call(index, "a", 4)); err != nil {
		t.Fatal(err)
	}
	b.Until("four calls wait in the group", func() bool {
		groups, err := b.groups()
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

// TestLoneCallThatCannotBeGathered: the call runs alone instead of coming back again and again.
func TestLoneCallThatCannotBeGathered(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 1)
	b.work(b.config(), b.fn("one", func(n int) { ran <- n }))
	m := wire.Message{
		Kind: wire.GoExtended, Path: b.Name + ".one", Payload: []byte{7},
		Meta: wire.Meta{Extra: &wire.Extra{Group: "k"}},
	}
	if err := b.store.Enqueue(t.Context(), []redisstore.Envelope{{ID: "", Message: m.Append(nil)}}); err != nil {
		t.Fatal(err)
	}
	if n := await(b, "the call", ran); n != 7 {
		t.Errorf("called with %d", n)
	}
}

// TestManyCallsOfSeveralGroups gathers calls of several groups in one step, all or none.
func TestManyCallsOfSeveralGroups(t *testing.T) {
	server := redistest.Start(t)
	b := newBenchOn(t, server)
	index, _ := b.indexed("index")
	q := b.q.With(delayed.Group("k"))
	calls := make([]*delayed.Task, 600)
	for i := range calls {
		calls[i] = delayed.Call(index, fmt.Sprint("tenant ", i%3), i)
	}
	b.delayWith(q, index, "tenant 0") // now the server knows the queue and the script
	before := server.CommandStats(t)
	_, err := q.DelayMany(t.Context(), calls...)
	b.Must(err)
	if n := server.CommandStats(t).Since(before)["evalsha"]; n != 2 || b.Size("_groups") != 3 {
		t.Errorf("%d calls of scripts, %d groups, expected 2 and 3", n, b.Size("_groups"))
	}
	lists, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"_group:*"))
	b.Must(err)
	if len(lists) != 3 {
		t.Fatalf("found the lists %q", lists)
	}
	b.Do("DEL", lists[0])
	b.Do("SET", lists[0], "of another program")
	_, err = q.DelayMany(t.Context(), calls[:9]...)
	var part *delayed.BatchError
	if !errors.As(err, &part) || part.Sent != 0 {
		t.Errorf("found %v, expected that nothing is sent", err)
	}
	for _, list := range lists[1:] {
		if n, err := redis.Int(b.Conn.Do("LLEN", list)); n/10 != 20 || err != nil {
			t.Errorf("%s has %d calls, %v; expected those of before, 200 or 201", list, n, err)
		}
	}
}
