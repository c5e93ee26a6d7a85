package delayed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// deadWorker leaves what a killed worker leaves: claims, and no heartbeat. It returns the id.
func (b *bench) deadWorker(messages ...string) string {
	b.T.Helper()
	id := wire.NewWorkerID()
	b.Do("SADD", b.Name+"_workers", id)
	for i, m := range messages {
		b.Do("HSET", b.Name+"_processing:"+id, fmt.Sprintf("1-%d", i+1), m)
	}
	b.Do("HSET", b.Name+"_claims:"+id, "1", "1")
	return id
}

// sweepGroup returns a sweeper of the queue whose contact with Redis has lasted for a while.
func (b *bench) sweepGroup(life, contact time.Duration) *sweepGroup {
	b.T.Helper()
	c := newContact(life)
	g := newSweepGroup(b.rdb.loops, "", life, c, loop.NewJournal(b.log.logger()))
	g.add(b.q.store)
	if err := g.open(context.Background()); err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(g.link.HangUp)
	c.since = time.Now().Add(-contact)
	return g
}

func (b *bench) pass(g *sweepGroup) {
	b.T.Helper()
	if err := g.pass(context.Background(), time.Second); err != nil {
		b.T.Fatal(err)
	}
}

func TestSweeperJudgesByTwoLooks(t *testing.T) {
	b := newBench(t)
	id := b.deadWorker("m1")
	g := b.sweepGroup(time.Minute, 10*time.Minute)
	b.pass(g)
	if b.Size("") != 0 {
		t.Fatal("the only worker was judged dead at first sight")
	}
	// A living worker registers again within a quarter of its heartbeat's life.
	g.missed[b.q.store][id] = time.Now().Add(-15 * time.Second)
	g.next = time.Hour
	b.pass(g)
	if b.Size("") != 0 || g.next > 500*time.Millisecond {
		t.Fatalf("after a quarter of a life: judged dead, or looked at no sooner than after %v", g.next)
	}
	g.missed[b.q.store][id] = time.Now().Add(-15501 * time.Millisecond)
	b.pass(g)
	if b.Size("") != 1 || b.Size("_noti") != 1 || b.Size("_workers") != 0 {
		t.Fatalf("not swept: %v", redistest.Dump(t, b.Conn, b.Name))
	}
	if c := b.counters(); c["swept"] != 1 {
		t.Errorf("counters %v", c)
	}
}

func TestSweeperForgetsWhatItSawBeforeContactBroke(t *testing.T) {
	for what, breaks := range map[string]func(*sweepGroup){
		"Redis was away in between":       func(g *sweepGroup) { g.contact.broken() },
		"the first look was at a replica": func(g *sweepGroup) { g.server = "another" },
	} {
		b := newBench(t)
		id := b.deadWorker("m1")
		g := b.sweepGroup(time.Minute, 10*time.Minute)
		b.pass(g)
		g.missed[b.q.store][id] = time.Now().Add(-2 * time.Minute)
		breaks(g)
		b.pass(g)
		if b.Size("") != 0 {
			t.Fatalf("judged dead although %s", what)
		}
		if first := g.missed[b.q.store][id]; time.Since(first) > time.Minute {
			t.Errorf("the look before still counts although %s", what)
		}
	}
}

func TestSweeperRequeuesInOldOrderAndCountsDeaths(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	for i := range 25 {
		b.delay(f, i)
	}
	messages := b.List("")
	b.Do("DEL", b.Name, b.Name+"_noti")
	b.Do("RPUSH", b.Name, "waiting")
	b.Do("RPUSH", b.Name+"_noti", "1")
	b.deadWorker(messages...)
	g := b.sweepGroup(time.Millisecond, time.Hour)
	b.Until("it is swept", func() bool { b.pass(g); return b.Size("") == 26 })
	after := b.List("")
	if after[25] != "waiting" {
		t.Errorf("swept tasks stand behind waiting ones")
	}
	for i, m := range after[:25] {
		msg, err := parseForTest(m)
		if err != nil {
			t.Fatal(err)
		}
		if int(msg.Payload[0]) != i || msg.Meta.Deaths != 1 ||
			time.Since(time.UnixMilli(msg.Meta.DiedAt)) > time.Minute {
			t.Errorf("task %d: payload %d, %+v", i, msg.Payload[0], msg.Meta)
		}
	}
	b.Check(redistest.Invariants{})
}

// Company is no evidence: a death that a task shared with others counts, but leads no nearer to the archive.
func TestSweeperNeverArchivesForSharedDeaths(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	b.delay(f, 1)
	py := "\x91\xa3m:f"
	g := b.sweepGroup(time.Millisecond, time.Hour)
	message := b.List("")[0]
	for death := 1; death <= 3*lifecycle.MaxDeaths; death++ {
		b.Do("DEL", b.Name, b.Name+"_noti")
		b.deadWorker(message, py, "rubbish")
		b.sweptDry(g)
		pending := b.List("")
		if len(pending) != 3 || pending[1] != py || pending[2] != "rubbish" {
			t.Fatalf("after %d deaths: %q", death, pending)
		}
		message = pending[0]
		msg, err := parseForTest(message)
		if err != nil || msg.Meta.Deaths != death || msg.Meta.Extra != nil {
			t.Fatalf("after %d deaths: %+v, %v", death, msg.Meta, err)
		}
	}
	b.Check(redistest.Invariants{})
}

func TestSweeperArchivesAfterThreeDeathsAlone(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {}, KeepResult(time.Hour))
	ref := b.delay(f, 1)
	b.delay(f, 2)
	ends, unsubscribe := b.q.signals.Subscribe(b.q.store.Keys.EndedOf(ref.ID()))
	defer unsubscribe()
	await(b, "the subscription", ends)
	g := b.sweepGroup(time.Millisecond, time.Hour)
	message, bystander := b.List("")[0], b.List("")[1]
	for death := 1; death <= lifecycle.MaxDeaths; death++ {
		b.Do("DEL", b.Name, b.Name+"_noti")
		b.Do("HSET", b.Name+"_claims:"+b.deadWorker(message, bystander), redisstore.MarkAlone, "1-1")
		b.deadWorker("\x91\xa3m:f") // cannot carry its deaths, and nobody can note that it is alone
		b.deadWorker("rubbish")
		b.sweptDry(g)
		pending := b.List("")
		if death == lifecycle.MaxDeaths {
			if len(pending) != 1 || pending[0] != bystander || b.Size("_archived") != 3 {
				t.Fatalf("after %d deaths: pending %q, %d archived", death, pending, b.Size("_archived"))
			}
			break
		}
		if len(pending) != 4 || !slices.Contains(pending, bystander) {
			t.Fatalf("after %d deaths: %q", death, pending)
		}
		for _, m := range pending {
			if msg, err := parseForTest(m); err == nil && msg.Meta.ID == ref.ID() {
				message = m
			}
		}
	}
	if info := b.Hash("_info")[ref.ID()]; !strings.Contains(info, "deaths") {
		t.Errorf("info %q", info)
	}
	if how := await(b, "that it has ended", ends); how != "ended" {
		t.Errorf("who waits for it is told %q", how)
	}
	if b.Size("_deaths") != 0 {
		t.Errorf("deaths are still counted: %v", b.Hash("_deaths"))
	}
	b.Check(redistest.Invariants{})
}

// What a worker leaves behind that was stopping in good order has not died with it.
func TestSweeperCountsNoDeathOfAStoppedWorker(t *testing.T) {
	b := newBench(t)
	b.delay(b.fn("f", func(int) {}), 1)
	message := b.List("")[0]
	b.Do("DEL", b.Name, b.Name+"_noti")
	id := b.deadWorker(message)
	b.Do("HSET", b.Name+"_claims:"+id, redisstore.MarkAlone, "1-1", redisstore.MarkStopped, "1")
	b.sweptDry(b.sweepGroup(time.Millisecond, time.Hour))
	if got := b.List(""); len(got) != 1 || got[0] != message {
		t.Errorf("expected the message as it was, found %q", got)
	}
	b.Check(redistest.Invariants{})
}

// sweptDry makes passes until no worker is left to be swept.
func (b *bench) sweptDry(g *sweepGroup) {
	b.T.Helper()
	g.certain = time.Millisecond
	b.Until("it is swept", func() bool { b.pass(g); return b.Size("_workers") == 0 })
}

func TestDeathsLapse(t *testing.T) {
	b := newBench(t)
	task := wire.Message{Kind: wire.GoExtended, Path: b.Name + ".f", Meta: wire.Meta{
		ID: "id", Deaths: lifecycle.MaxDeaths, DiedAt: time.Now().Add(-lifecycle.DeathLife - time.Minute).UnixMilli(),
		Extra: &wire.Extra{AloneDeaths: lifecycle.MaxDeaths - 1},
	}}
	id := b.deadWorker(string(task.Append(nil)))
	b.Do("HSET", b.Name+"_claims:"+id, redisstore.MarkAlone, "1-1")
	g := b.sweepGroup(time.Millisecond, time.Hour)
	b.Until("it is swept", func() bool { b.pass(g); return b.Size("")+b.Size("_archived") == 1 })
	if b.Size("") != 1 {
		t.Fatal("archived because of deaths that count no more")
	}
	msg, err := parseForTest(b.List("")[0])
	if err != nil || msg.Meta.Deaths != 1 || msg.Meta.Extra == nil || msg.Meta.Extra.AloneDeaths != 1 {
		t.Errorf("%+v, %v, expected one death, alone", msg.Meta, err)
	}
}

func TestSweeperSweepsLegacyClaims(t *testing.T) {
	b := newBench(t)
	dead, alive := redistest.Name(t), redistest.Name(t)
	b.Do("HSET", b.Name+"_processing", dead, "\x91\xa3m:f", alive, "\x91\xa3m:g")
	b.Do("SET", alive, "1", "EX", 60)
	t.Cleanup(func() { b.Do("DEL", alive) })
	g := b.sweepGroup(time.Millisecond, time.Hour)
	b.pass(g)
	if b.Size("") != 0 {
		t.Fatal("judged at first sight")
	}
	b.Until("it is swept", func() bool { b.pass(g); return b.Size("") == 1 })
	if m := b.List("")[0]; m != "\x91\xa3m:f" {
		t.Errorf("requeued as %q", m)
	}
	if h := b.Hash("_processing"); len(h) != 1 || h[alive] == "" {
		t.Errorf("legacy claims %q", h)
	}
}

func TestSweeperMendsNotifications(t *testing.T) {
	b := newBench(t)
	g := b.sweepGroup(time.Minute, time.Hour)
	for range 2500 {
		b.Do("RPUSH", b.Name, "m")
	}
	b.pass(g)
	if b.Size("_noti") != 0 {
		t.Fatal("a deficit was mended at first sight")
	}
	b.pass(g)
	if n := b.Size("_noti"); n != 2500 {
		t.Fatalf("%d notifications, expected 2500", n)
	}
	for range 500 {
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	b.pass(g)
	if n := b.Size("_noti"); n != 2500 {
		t.Fatalf("%d notifications, expected the surplus to be gone at once", n)
	}
}

func TestSweeperWithoutLockOnlyLooks(t *testing.T) {
	b := newBench(t)
	b.deadWorker("m")
	first := b.sweepGroup(time.Millisecond, time.Hour)
	second := b.sweepGroup(time.Millisecond, time.Hour)
	b.pass(first)
	b.pass(second)
	for w := range second.missed[b.q.store] {
		second.missed[b.q.store][w] = time.Now().Add(-time.Minute) // it has been dead for long
	}
	second.certain, second.next = 2*time.Second, time.Hour
	b.pass(second)
	if b.Size("") != 0 {
		t.Fatal("swept without the lock")
	}
	if second.next > second.certain/2 {
		t.Errorf("looks again after %v, though whoever has the lock may be dead", second.next)
	}
	b.Do("DEL", b.Name+"_sweeper")
	b.pass(second)
	if b.Size("") != 1 {
		t.Fatal("not swept as soon as the lock was free")
	}
}

func TestSweeperRunsAlone(t *testing.T) {
	for _, interval := range []time.Duration{20 * time.Millisecond, time.Hour} {
		t.Run(interval.String(), func(t *testing.T) { sweepAlone(t, interval) })
	}
}

// sweepAlone has a worker die between two passes of a sweeper, which looks at least once in the life of a heartbeat.
func sweepAlone(t *testing.T, interval time.Duration) {
	t.Helper()
	b := newBench(t)
	s, err := NewSweeper(b.rdb, SweeperConfig{
		Queues: []string{b.Name}, Interval: interval, HeartbeatLife: shortestLife, Logger: b.log.logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	b.Until("it has made a pass", func() bool { return b.Int("EXISTS", b.Name+"_sweeper") == 1 })
	b.deadWorker("m1", "m2")
	b.Until("it is swept", func() bool { return b.Size("") == 2 })
	cancel()
	if err := await(b, "Run", result); err != nil {
		t.Error(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("second Run: %v", err)
	}
}

func TestNewSweeperSaysAllThatIsWrong(t *testing.T) {
	b := newBench(t)
	_, err := NewSweeper(b.rdb, SweeperConfig{Queues: []string{"a b"}, Interval: 1, HeartbeatLife: 1})
	for _, want := range []string{"a b", "Interval", "HeartbeatLife"} {
		if !strings.Contains(errorText(err), want) {
			t.Errorf("%v\ndoes not mention %s", err, want)
		}
	}
	if _, err := NewSweeper(nil, SweeperConfig{Queues: []string{"a"}}); err == nil {
		t.Error("a nil handle was accepted")
	}
	if _, err := NewSweeper(b.rdb, SweeperConfig{}); err == nil {
		t.Error("no queues were accepted")
	}
}

func TestSweeperCarriesOnAfterRedisWasAway(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t, "--appendonly", "yes"))
	s, err := NewSweeper(b.rdb, SweeperConfig{
		Queues: []string{b.Name}, Interval: 20 * time.Millisecond, HeartbeatLife: shortestLife, Logger: b.log.logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-result })
	b.Until("it has taken the lock",
		func() bool { n, _ := redis.Int(b.Conn.Do("EXISTS", b.Name+"_sweeper")); return n == 1 })
	b.Server.Kill(t)
	b.Until("it has noticed", func() bool { return strings.Contains(b.log.String(), "cannot sweep") })
	b.Server.Restart(t)
	b.Conn = b.Server.Dial(t)
	b.deadWorker("m")
	b.Until("it is swept", func() bool { return b.Size("") == 1 })
}

func TestContactBreaksWhenACallIsSlow(t *testing.T) {
	c := newContact(time.Minute)
	if _, ok := c.unbroken(); ok {
		t.Error("contact before the first call")
	}
	c.call()(nil)
	if _, ok := c.unbroken(); !ok {
		t.Error("no contact after a call")
	}
	c.call()(errors.New("x"))
	if _, ok := c.unbroken(); ok {
		t.Error("contact after a failed call")
	}
	c.call()(nil)
	done := c.call()
	c.pending[c.next] = time.Now().Add(-time.Minute) // it has been under way for a life
	if _, ok := c.unbroken(); ok {
		t.Error("contact while a call hangs")
	}
	done(nil)
	if _, ok := c.unbroken(); !ok {
		t.Error("the start of the call is what done remembers")
	}
	c.slow = -1
	c.call()(nil)
	if _, ok := c.unbroken(); ok {
		t.Error("contact after a slow call")
	}
}
