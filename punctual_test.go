package delayed_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/schedule"
)

// tickServer answers the commands of schedulers from memory, by the clock of a synctest bubble, so that each tick has
// its exact time.
type tickServer struct {
	mute bool // whether it publishes no signals

	mu      sync.Mutex // protects the following
	values  map[string]string
	dues    map[string]int64
	handles []*delayed.Redis
	ticks   []string // id and the time at which it was enqueued, in order
	looks   int
}

func newTickServer(mute bool) *tickServer {
	return &tickServer{mute: mute, values: map[string]string{}, dues: map[string]int64{}}
}

// handle returns another handle on the server.
func (s *tickServer) handle() *delayed.Redis {
	rdb := delayed.FromSource(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles = append(s.handles, rdb)
	return rdb
}

func (s *tickServer) Conn(context.Context, string) (redis.Conn, error) { return tickConn{s: s}, nil }
func (s *tickServer) Slot(string) int                                  { return 0 }
func (s *tickServer) Close() error                                     { return nil }

// tickConn is a connection. It cannot subscribe; publish calls the listeners.
type tickConn struct{ s *tickServer }

func (c tickConn) Close() error                   { return nil }
func (c tickConn) Err() error                     { return nil }
func (c tickConn) Send(string, ...any) error      { return io.EOF }
func (c tickConn) Flush() error                   { return io.EOF }
func (c tickConn) Receive() (any, error)          { return nil, io.EOF }
func (c tickConn) Do(string, ...any) (any, error) { return nil, io.EOF }
func (c tickConn) DoContext(_ context.Context, cmd string, args ...any) (any, error) {
	return c.s.do(cmd, args)
}
func (c tickConn) ReceiveContext(context.Context) (any, error) { return nil, io.EOF }
func (c tickConn) DoWithTimeout(_ time.Duration, cmd string, args ...any) (any, error) {
	return c.s.do(cmd, args)
}
func (c tickConn) ReceiveWithTimeout(time.Duration) (any, error) { return nil, io.EOF }

// do executes a command. Scripts do what those in lua do, as far as entries without a lock need it.
func (s *tickServer) do(cmd string, args []any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	text := func(i int) string { return fmt.Sprintf("%s", args[i]) }
	switch cmd {
	case "TIME":
		return []any{fmt.Append(nil, now.Unix()), fmt.Append(nil, now.Nanosecond()/1000)}, nil
	case "HGET":
		if v := s.values[text(1)]; v != "" {
			return []byte(v), nil
		}
		return nil, nil
	case "HKEYS":
		return []any{}, nil
	case "INFO":
		return []byte("role:master\r\n"), nil
	case "PUBLISH":
		for _, rdb := range s.handles {
			s.tell(rdb, text(0), text(1))
		}
		return int64(0), nil
	}
	if cmd != "EVALSHA" {
		return nil, io.EOF
	}
	n, _ := args[1].(int)
	sha := args[0]
	args = args[2+n:]
	switch sha {
	case redisstore.ScriptAgenda.Sha:
		return s.agenda(now.UnixMilli()), nil
	case redisstore.ScriptEntry.Sha:
		name, due := text(0), args[3]
		if s.values[name] != text(1) {
			return int64(0), nil
		}
		s.file(name, text(2), due)
		return int64(1), nil
	case redisstore.ScriptTick.Sha:
		name, earlier := text(0), args[6].(int64) //nolint:errcheck // by contract
		switch {
		case s.values[name] != text(1):
			return []any{int64(0), now.UnixMilli(), []byte{}}, nil
		case now.UnixMilli() < earlier:
			return []any{int64(-1), now.UnixMilli(), []byte{}}, nil
		}
		for i := 10; i < len(args); i += 5 {
			s.ticks = append(s.ticks, fmt.Sprintf("%s at %d", args[i+1], now.UnixMilli()))
		}
		s.file(name, text(2), args[4])
		return []any{int64(1), now.UnixMilli(), []byte{}}, nil
	}
	return nil, redis.Error("ERR an unexpected script")
}

// file stores an entry.
func (s *tickServer) file(name, value string, due any) {
	s.values[name] = value
	delete(s.dues, name)
	if ms, ok := due.(int64); ok {
		s.dues[name] = ms
	}
}

// agenda returns what is due now, and when the next entry is due.
func (s *tickServer) agenda(now int64) []any {
	s.looks++
	next, due := int64(-1), []string{}
	for name, at := range s.dues {
		switch wait := at - now; {
		case wait <= 0:
			due = append(due, name)
		case next < 0 || wait < next:
			next = wait
		}
	}
	slices.Sort(due)
	reply := []any{now, next}
	for _, name := range due {
		reply = append(reply, []byte(name), []byte(s.values[name]))
	}
	return reply
}

// tell sends a message to those who listen on a handle.
func (s *tickServer) tell(rdb *delayed.Redis, channel, message string) {
	if s.mute {
		return
	}
	delayed.Signals(rdb).Mu.Lock()
	defer delayed.Signals(rdb).Mu.Unlock()
	if ch := delayed.Signals(rdb).Channels[channel]; ch != nil {
		ch.Send(message)
	}
}

// since returns the ticks of an entry that were enqueued since the last call, and forgets all ticks.
func (s *tickServer) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ticks := s.ticks
	s.ticks, s.looks = nil, 0
	return ticks
}

// schedule runs a scheduler in the bubble until it is stopped.
func (s *tickServer) schedule(t *testing.T, entries ...delayed.Entry) (stop func()) {
	t.Helper()
	rdb := s.handle()
	cfg := delayed.SchedulerConfig{Queue: "q", Entries: entries, Logger: new(redistest.Log).Logger()}
	if len(entries) > 0 {
		cfg.Owner = "test"
	}
	sch, err := delayed.NewScheduler(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- sch.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		delayed.Signals(rdb).Close()
	}
}

// punctual checks that each tick of the entries since a time was enqueued, in order, exactly when it was due.
func (s *tickServer) punctual(t *testing.T, what string, from time.Time, entries ...delayed.Entry) {
	t.Helper()
	synctest.Wait()
	var want []string
	now := time.Now()
	for _, e := range entries {
		tt, err := (&schedule.Definition{Spec: e.Spec, Jitter: e.Jitter}).Timetable(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		for tick := tt.Next(from.Add(-e.Jitter - 1)); !tick.After(now); tick = tt.Next(tick) {
			if due := tt.Due(tick); due.After(from) && !due.After(now) {
				want = append(want, fmt.Sprintf("%s at %d", schedule.TickID(e.Name, tick), due.UnixMilli()))
			}
		}
	}
	found := s.since()
	slices.Sort(want)
	slices.Sort(found)
	if len(want) == 0 || !slices.Equal(found, want) {
		t.Errorf("%s: found ticks\n%q\nexpected\n%q", what, found, want)
	}
}

// TestTicksArePunctual: each tick is enqueued once, in the millisecond in which it is due, by one scheduler or several,
// when one ends and another takes over, and after the entry was changed. There are about as many looks as ticks.
func TestTicksArePunctual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTickServer(false)
		task := delayed.Call(delayed.Func(func() {}, delayed.Name("f")))
		second := delayed.Entry{Name: "second", Spec: "@every 1s", Task: task}
		spread := delayed.Entry{Name: "spread", Spec: "@every 7s", Task: task, Jitter: 3 * time.Second}
		minute := delayed.Entry{Name: "minute", Spec: "* * * * *", Task: task}
		entries := []delayed.Entry{second, spread, minute}
		time.Sleep(300 * time.Millisecond) //nolint:forbidigo // of the bubble's clock
		start := time.Now()
		pass := func(what string, d time.Duration) {
			t.Helper()
			time.Sleep(d) //nolint:forbidigo // as above
			s.punctual(t, what, start, entries...)
			start = time.Now()
		}
		stopA := s.schedule(t, entries...)
		s.mu.Lock()
		s.looks = 0
		s.mu.Unlock()
		time.Sleep(70 * time.Second) //nolint:forbidigo // as above
		synctest.Wait()
		// one look serves each tick, and one follows it; some find none
		if s.mu.Lock(); s.looks > 3*len(s.ticks)+14 {
			t.Errorf("%d looks for %d ticks", s.looks, len(s.ticks))
		}
		s.mu.Unlock()
		s.punctual(t, "one scheduler", start, entries...)
		start = time.Now()
		stopB := s.schedule(t, entries...)
		stopC := s.schedule(t)
		pass("three schedulers", 70*time.Second)
		stopA()
		pass("two, after one has ended", 70*time.Second)
		stopB()
		stopC()
		stopD := s.schedule(t, entries...)
		pass("another one, which takes over", 70*time.Second)

		// Entries change while a scheduler rests: some tick sooner, some later.
		p := delayed.NewQueue("q", s.handle()).Periodic()
		second.Spec, minute.Spec = "@every 3s", "@every 2s"
		for _, e := range []delayed.Entry{second, minute} {
			if err := p.Set(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		entries = []delayed.Entry{second, spread, minute}
		pass("changed", 70*time.Second)
		for _, e := range []delayed.Entry{second, minute} {
			if err := p.Pause(t.Context(), e.Name); err != nil {
				t.Fatal(err)
			}
		}
		entries = []delayed.Entry{spread}
		pass("paused", 70*time.Second)
		if err := p.Resume(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
		entries = []delayed.Entry{second, spread}
		pass("resumed", 70*time.Second)
		stopD()
	})
}

// TestTicksWithoutSignals: a scheduler that gets no signals notices a change within five seconds, enqueues the ticks
// that were due meanwhile, and the others at their times.
func TestTicksWithoutSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTickServer(true)
		stop := s.schedule(t)
		e := delayed.Entry{Name: "e", Spec: "@every 1s", Task: delayed.Call(delayed.Func(func() {}, delayed.Name("f")))}
		time.Sleep(19500 * time.Millisecond) //nolint:forbidigo // of the bubble's clock
		if err := delayed.NewQueue("q", s.handle()).Periodic().Set(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		time.Sleep(engine.CheckInterval) //nolint:forbidigo // as above
		synctest.Wait()
		late := s.since()
		for i, tick := range late {
			id := schedule.TickID("e", start.Truncate(time.Second).Add(time.Duration(i+1)*time.Second))
			if !strings.HasPrefix(tick, id+" ") {
				t.Errorf("tick %d is %s, expected %s", i, tick, id)
			}
		}
		if len(late) != int(engine.CheckInterval/time.Second) {
			t.Errorf("after %v, found %q", engine.CheckInterval, late)
		}
		start = time.Now()
		time.Sleep(time.Minute) //nolint:forbidigo // as above
		s.punctual(t, "noticed", start, e)
		stop()
	})
}
