package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// fill enqueues n tasks with one of some texts each.
func (b *bench) fill(n int, texts ...string) {
	b.T.Helper()
	calls := make([]*delayed.Task, n)
	for i := range calls {
		calls[i] = delayed.Call(welcome, i, texts[i%len(texts)])
	}
	_, err := b.q.DelayMany(bg, calls...)
	b.Must(err)
}

// TestDoAllEndsBesideProducer archives pending tasks while more tasks are enqueued between its pages than a page has.
func TestDoAllEndsBesideProducer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(250, "old")
	pages := 0
	r, err := b.ins.DoAll(bg, queueName, inspect.Archive(), inspect.Query{State: state.Pending},
		func(inspect.Report) bool {
			b.fill(300, "new")
			pages++
			return pages < 20
		})
	b.Must(errors.Join(err, r.Err()))
	old := b.tasks(inspect.Query{State: state.Pending, Filter: inspect.Filter{Arg: "1=old"}})
	if pages > 12 || r.Done != 250 || len(old) > 0 {
		t.Errorf("%+v after %d pages, %d old tasks are left", r, pages, len(old))
	}
}

// TestDoAllBesideOthers deletes tasks by several inspectors at once. Each drops gaps at the new end, where all of them
// read.
func TestDoAllBesideOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(2000, "a", "b", "c", "d")
	var done sync.WaitGroup
	for _, text := range []string{"a", "b", "c"} {
		done.Go(func() {
			r, err := b.ins.DoAll(bg, queueName, inspect.Delete(), inspect.Query{
				State: state.Pending, Filter: inspect.Filter{Arg: "1=" + text},
			}, nil)
			if err := errors.Join(err, r.Err()); err != nil || r.Done != 500 || r.Skipped != 0 {
				t.Errorf("%s: %+v, %v", text, r, err)
			}
		})
	}
	done.Wait()
	for _, task := range b.tasks(inspect.Query{State: state.Pending, Limit: 1000}) {
		if task.Args[1] != "d" {
			t.Fatalf("%s is left", task.Call)
		}
	}
}

// TestNewestFirstBesideWorkers reads pages while tasks are claimed and given back at the old end, and others come at
// the new one.
func TestNewestFirstBesideWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(45, "x")
	want := ids(b.tasks(inspect.Query{State: state.Pending, NewestFirst: true}))
	var got []string
	var held []any
	q := inspect.Query{State: state.Pending, NewestFirst: true, Limit: 10}
	for {
		page, err := b.ins.Tasks(bg, queueName, q)
		b.Must(err)
		got = append(got, ids(page.Tasks)...)
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
		b.fill(3, "new")
		if len(held) == 0 {
			for range 5 {
				held = append(held, b.Do("LPOP", b.Name))
			}
			continue
		}
		for _, m := range slices.Backward(held) {
			b.Do("LPUSH", b.Name, m)
		}
		held = nil
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %d tasks, expected %d:\n%v\n%v", len(got), len(want), got, want)
	}
}

// TestListWithHugeMessages reads past messages that are too large to leave Redis, page by page.
func TestListWithHugeMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 4 {
		b.fill(1, fmt.Sprint(i))
		b.Do("RPUSH", b.Name, strings.Repeat("x", 6<<20))
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	for _, newest := range []bool{false, true} {
		list := b.tasks(inspect.Query{State: state.Pending, Limit: 1, NewestFirst: newest})
		if len(list) != 8 {
			t.Errorf("newest first %v: %d tasks, expected 8", newest, len(list))
		}
	}
}

// TestMoveToNewQueue moves a task to a queue that nobody has used.
func TestMoveToNewQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.With(delayed.TaskID("a")).Delay(welcome, 1, "en")
	b.Must(err)
	b.do(inspect.MoveTo("fresh"), 1, "a")
	queues, err := b.ins.Queues(bg)
	b.Must(err)
	if len(queues) != 2 || queues[0].Name != "fresh" || queues[0].Pending != 1 {
		t.Errorf("found %+v, expected fresh and mail", queues)
	}
}

// TestMoveOfTakenID moves a task to a queue that has a task of its id.
func TestMoveOfTakenID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := delayed.NewQueue("other", b.rdb)
	for i := range 3 {
		_, err := b.q.With(delayed.TaskID(id(i)), delayed.In(time.Hour)).Delay(welcome, i, "en")
		b.Must(err)
	}
	_, err := other.With(delayed.TaskID(id(0)), delayed.In(time.Hour)).Delay(welcome, 1, "en")
	b.Must(err)
	r, err := b.ins.DoAll(bg, queueName, inspect.MoveTo("other"), inspect.Query{State: state.Scheduled}, nil)
	b.Must(err)
	if r.Done != 2 || len(r.Failed) != 1 || r.Failed[0].ID != id(0) || b.in(state.Scheduled) != id(0) ||
		!strings.Contains(r.Failed[0].Err.Error(), "it stays in queue mail: ") {
		t.Errorf("%+v, scheduled %s", r, b.in(state.Scheduled))
	}
}

// TestMoveToBrokenQueue puts tasks of all states back to where they were, because the target takes none.
func TestMoveToBrokenQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bad := delayed.Func(func() error { return errors.New("no luck") }, delayed.Name(path("bad")))
	for name, opt := range map[string]delayed.Option{
		"archived": delayed.MaxRetry(0), "retry": delayed.Backoff(time.Hour), "scheduled": delayed.In(time.Hour),
	} {
		_, err := b.q.With(opt, delayed.TaskID(name)).Delay(bad)
		b.Must(err)
	}
	_, err := b.q.With(delayed.TaskID("parked")).Enqueue(bg, delayed.NewGoTask("nobody.knows"))
	b.Must(err)
	w := b.work(bad)
	where := map[string]state.Task{
		"archived": state.Archived, "retry": state.Retry, "scheduled": state.Scheduled, "parked": state.Parked,
	}
	before := map[string]inspect.Task{}
	b.Until("all are where they belong", func() bool {
		for name, want := range where {
			task, err := b.ins.Task(bg, queueName, name)
			if before[name] = task; err != nil || task.State != want {
				return false
			}
		}
		return true
	})
	w.Pause()
	b.Until("the worker pauses", func() bool { return w.Status().State == state.Paused })
	_, err = b.q.With(delayed.TaskID("pending")).Delay(bad)
	b.Must(err)
	where["pending"] = state.Pending
	before["pending"], err = b.ins.Task(bg, queueName, "pending")
	b.Must(err)
	broken := strings.TrimSuffix(b.Name, queueName) + "other"
	for _, suffix := range []string{"", "_scheduled"} {
		b.Do("SET", broken+suffix, "another program's")
	}

	for name, s := range where {
		r, err := b.ins.Do(bg, queueName, inspect.MoveTo("other"), name)
		if err == nil || r.Done != 0 || len(r.Failed) != 1 || r.Failed[0].ID != name ||
			!strings.Contains(r.Failed[0].Err.Error(), "it stays in queue mail") {
			t.Errorf("%s: found %+v, %v", name, r, err)
		}
		task, err := b.ins.Task(bg, queueName, name)
		b.Must(err)
		was := before[name]
		if task.State != s || !task.Due.Equal(was.Due) || task.Reason != was.Reason || task.Error != was.Error ||
			task.Call != was.Call || !task.At.Equal(was.At) {
			t.Errorf("%s: found %+v, expected %+v", name, task, was)
		}
	}
	for _, suffix := range []string{"", "_scheduled"} {
		b.Do("DEL", broken+suffix)
	}
	b.do(inspect.Delete(), len(where), slices.Sorted(maps.Keys(where))...)
}

// TestEmptyID looks for the task with no id among tasks that have none.
func TestEmptyID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Do("RPUSH", b.Name, "\x92\xa1f\xc0")
	b.Do("RPUSH", b.Name+"_noti", "1")
	r, err := b.ins.Do(bg, queueName, inspect.Delete(), "")
	b.Must(err)
	if r.Done != 0 || len(r.Failed) != 1 || !errors.Is(r.Err(), inspect.ErrNotFound) || b.Size("") != 1 {
		t.Errorf("%+v, %d tasks are left", r, b.Size(""))
	}
}

// TestRescheduleExtendsLocks holds the locks of tasks that are rescheduled as long as those of tasks enqueued so.
func TestRescheduleExtendsLocks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := time.Now().Add(48 * time.Hour)
	delay := func(key string, opts ...delayed.Option) error {
		_, err := b.q.With(append(opts, delayed.UniqueKey(key, time.Minute))...).Delay(welcome, 1, "en")
		return err
	}
	b.Must(delay("pending", delayed.TaskID("pending")))
	b.Must(delay("scheduled", delayed.TaskID("scheduled"), delayed.In(time.Minute)))
	b.do(inspect.Reschedule(at), 2, "pending", "scheduled")
	for _, field := range []string{"k:pending", "#pending", "k:scheduled", "#scheduled"} {
		expiry, _, _ := strings.Cut(b.Hash("_locks")[field], " ")
		ms, err := strconv.ParseInt(expiry, 10, 64)
		b.Must(err)
		if time.UnixMilli(ms).Before(at) {
			t.Errorf("%s ends at %v, before the task is due", field, time.UnixMilli(ms))
		}
	}
	r, err := b.ins.Do(bg, queueName, inspect.Reschedule(time.Unix(1<<60, 0)), "pending")
	if err == nil || !strings.Contains(err.Error(), "up to the year 9999") {
		t.Errorf("%+v, %v: expected an error about the year", r, err)
	}
}

// TestRubbishInRegistry lists queues while somebody else has written to their registry.
func TestRubbishInRegistry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(1, "x")
	b.Do("HSET", strings.TrimSuffix(b.Name, queueName)+"delayed_queues", "other", "yes", "bad name", "0")
	queues, err := b.ins.Queues(bg)
	b.Must(err)
	if len(queues) != 2 || queues[0].Name != queueName || queues[1].Name != "other" || queues[1].Legacy {
		t.Errorf("%+v", queues)
	}
}

// TestDeleteOnlyWhatIsListed deletes archived tasks of which one has the id of a completed one.
func TestDeleteOnlyWhatIsListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer := delayed.Func(func() int { return 42 }, delayed.Name("answer"))
	_, err := b.q.With(delayed.TaskID("a"), delayed.KeepResult(time.Hour)).Delay(answer)
	b.Must(err)
	b.work(answer)
	b.Until("its result is kept", func() bool { return len(b.tasks(inspect.Query{State: state.Completed})) == 1 })
	for _, id := range []string{"a", "b"} {
		b.Do("ZADD", b.Name+"_archived", time.Now().Add(time.Hour).UnixMilli(), id)
		b.Do("HSET", b.Name+"_tasks", id, "\x92\xa1f\xc0")
	}
	r, err := b.ins.DoAll(bg, queueName, inspect.Delete(), inspect.Query{State: state.Archived}, nil)
	b.Must(errors.Join(err, r.Err()))
	if r.Done != 2 || r.Skipped != 0 || b.in(state.Completed) != "a" {
		t.Errorf("%+v, completed %q", r, b.in(state.Completed))
	}
}

// TestCanceledCallsOfGroups lists the calls of a group without one that was canceled.
func TestCanceledCallsOfGroups(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 3 {
		_, err := b.q.With(delayed.Group("key")).Delay(gathered, []int{i})
		b.Must(err)
	}
	list := ids(b.tasks(inspect.Query{State: state.Aggregating}))
	b.do(inspect.Delete(), 1, list[1])
	if got := ids(b.tasks(inspect.Query{State: state.Aggregating, NewestFirst: true})); len(got) != 2 ||
		slices.Contains(got, list[1]) {
		t.Errorf("%v, expected it without %s", got, list[1])
	}
}

// TestCanceledMove cancels the context of a move after its first page.
func TestCanceledMove(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(250, "x")
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	r, err := b.ins.DoAll(ctx, queueName, inspect.MoveTo("other"), inspect.Query{State: state.Pending},
		func(inspect.Report) bool { cancel(); return true })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected that of the context", err)
	}
	q, err := b.ins.Queue(bg, queueName)
	b.Must(err)
	other, err := b.ins.Queue(bg, "other")
	b.Must(err)
	if r.Done != other.Pending || q.Archived != 0 || q.Pending+other.Pending != 250 {
		t.Errorf("%+v: %d pending, %d archived, %d moved", r, q.Pending, q.Archived, other.Pending)
	}
}

// TestTwoMoves has a second inspector move archived tasks, run them and delete them between the moment when the first
// one has read them and its own move.
func TestTwoMoves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(3, "x")
	_, err := b.ins.DoAll(bg, queueName, inspect.Archive(), inspect.Query{State: state.Pending}, nil)
	b.Must(err)
	var once sync.Once
	late, err := inspect.New(b.rdb, inspect.Config{Redact: func(*inspect.Contents) {
		once.Do(func() {
			r, err := b.ins.DoAll(bg, queueName, inspect.MoveTo("other"), inspect.Query{State: state.Archived}, nil)
			if err := errors.Join(err, r.Err()); err != nil || r.Done != 3 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}})
	b.Must(err)
	r, err := late.DoAll(bg, queueName, inspect.MoveTo("other"), inspect.Query{State: state.Archived}, nil)
	b.Must(errors.Join(err, r.Err()))
	q, err := b.ins.Queue(bg, "other")
	b.Must(err)
	if q.Pending != 3 || r.Done != 0 {
		t.Errorf("%d tasks have arrived, expected 3; the second move: %+v", q.Pending, r)
	}
}

// TestTaskThatIsMoved refuses actions on a task that somebody else moves, until it is clear that they have given up.
func TestTaskThatIsMoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := func(id string, ago time.Duration) {
		b.Do("ZADD", b.Name+"_archived", time.Now().Add(time.Hour).UnixMilli(), id)
		b.Do("HSET", b.Name+"_tasks", id, "\x92\xa1f\xc0")
		info := wire.Info{Reason: "moving", At: time.Now().Add(-ago)}
		b.Do("HSET", b.Name+"_info", id, info.Encode())
	}
	file("young", time.Second)
	file("old", time.Hour)
	r, err := b.ins.DoAll(bg, queueName, inspect.RunNow(), inspect.Query{State: state.Archived}, nil)
	b.Must(err)
	if r.Done != 1 || len(r.Failed) != 1 || r.Failed[0].ID != "young" ||
		!strings.Contains(r.Err().Error(), "being moved to another queue") {
		t.Errorf("%+v", r)
	}
}

// TestDoAllOnLegacyQueue acts on tasks of a legacy queue, whose messages have no ids and are equal to others.
func TestDoAllOnLegacyQueue(t *testing.T) {
	t.Parallel()
	rdb, err := delayed.Dial(redistest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := redistest.NewBench(t, redistest.Shared(t))
	q, err := delayed.OpenQueue(b.Name, rdb.WithLegacy(), delayed.QueueConfig{})
	b.Must(err)
	ins, err := inspect.New(rdb, inspect.Config{})
	b.Must(err)
	t.Cleanup(func() {
		b.Must(ins.DeleteQueue(bg, b.Name, true))
		b.Must(ins.DeleteQueue(bg, b.Name+"-other", true))
	})
	const n = 1000
	for i := range n {
		_, err := q.Delay(welcome, i%5, "en")
		b.Must(err)
	}
	for i, a := range []inspect.Action{
		inspect.Delete(), inspect.Archive(), inspect.MoveTo(b.Name + "-other"),
		inspect.Edit(delayed.Call(welcome, 9, "x")),
	} {
		r, err := ins.DoAll(bg, b.Name, a, inspect.Query{
			State: state.Pending, Filter: inspect.Filter{Arg: fmt.Sprint("0=", i)},
		}, nil)
		b.Must(errors.Join(err, r.Err()))
		if r.Done != n/5 || r.Skipped != 0 {
			t.Errorf("%v: %+v, expected %d done", a, r, n/5)
		}
	}
	if list, noti := b.Size(""), b.Size("_noti"); list != 2*n/5 || noti != list {
		t.Errorf("%d pending with %d notifications, expected %d", list, noti, 2*n/5)
	}
}

// TestLatencyAfterReschedule counts how long a task waits from its new due time on, also if it was pending before.
func TestLatencyAfterReschedule(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	msg := wire.Message{
		Kind: wire.GoExtended, Path: "a.b",
		Meta: wire.Meta{ID: "old", EnqueuedAt: time.Now().Add(-time.Hour).UnixMilli()},
	}
	b.Do("RPUSH", b.Name, msg.Append(nil))
	b.Do("RPUSH", b.Name+"_noti", "1")
	b.do(inspect.Reschedule(time.Now().Add(time.Hour)), 1, "old")
	due := time.Now().Add(time.Minute).Truncate(time.Millisecond)
	b.do(inspect.RunNow(), 1, "old")
	b.do(inspect.Reschedule(due), 1, "old")
	tasks := b.tasks(inspect.Query{State: state.Scheduled})
	if len(tasks) != 1 || !tasks[0].Due.Equal(due) {
		t.Fatalf("found %+v", tasks)
	}
	message, err := redis.Bytes(b.Do("HGET", b.Name+"_tasks", "old"), nil)
	b.Must(err)
	found, err := wire.Parse(message, wire.WorkerLimits)
	if err != nil || found.Meta.Extra == nil || found.Meta.Extra.Due != due.UnixMilli() {
		t.Errorf("the message says %+v, %v, expected due %d", found.Meta.Extra, err, due.UnixMilli())
	}
	b.do(inspect.Delete(), 1, "old")
}
