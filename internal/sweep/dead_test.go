package sweep

import (
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

func TestSweeperJudgesByTwoLooks(t *testing.T) {
	b := newBench(t)
	id := b.deadWorker("m1")
	g := b.group(time.Minute, 10*time.Minute)
	b.pass(g)
	if b.Size("") != 0 {
		t.Fatal("the only worker was judged dead at first sight")
	}
	// A living worker registers again within a quarter of its heartbeat's life.
	g.missed[b.store][id] = time.Now().Add(-15 * time.Second)
	g.next = time.Hour
	b.pass(g)
	if b.Size("") != 0 || g.next > 500*time.Millisecond {
		t.Fatalf("after a quarter of a life: judged dead, or looked at no sooner than after %v", g.next)
	}
	g.missed[b.store][id] = time.Now().Add(-15501 * time.Millisecond)
	b.pass(g)
	if b.Size("") != 1 || b.Size("_noti") != 1 || b.Size("_workers") != 0 {
		t.Fatalf("not swept: %v", redistest.Dump(t, b.Conn, b.Name))
	}
	if c := b.counters(); c["swept"] != 1 {
		t.Errorf("counters %v", c)
	}
}

func TestSweeperForgetsWhatItSawBeforeContactBroke(t *testing.T) {
	for what, breaks := range map[string]func(*Group){
		"Redis was away in between":       func(g *Group) { g.cfg.Health.Break() },
		"the first look was at a replica": func(g *Group) { g.server = "another" },
	} {
		b := newBench(t)
		id := b.deadWorker("m1")
		g := b.group(time.Minute, 10*time.Minute)
		b.pass(g)
		if g.server == "" {
			t.Fatal("nobody knows which server that was")
		}
		g.missed[b.store][id] = time.Now().Add(-2 * time.Minute)
		breaks(g)
		b.pass(g)
		if b.Size("") != 0 {
			t.Fatalf("judged dead although %s", what)
		}
		if first := g.missed[b.store][id]; time.Since(first) > time.Minute {
			t.Errorf("the look before still counts although %s", what)
		}
	}
}

// TestSweeperWithoutServerID: where Redis does not report which server it is, a server without the worker's own
// heartbeat may be another one than at the look before, so that look does not count.
func TestSweeperWithoutServerID(t *testing.T) {
	b := newBench(t)
	id := b.deadWorker("m1")
	g := b.group(time.Minute, 10*time.Minute)
	g.cfg.Worker, g.server, g.asked = "own", "", true
	for _, own := range []bool{false, true} {
		if own {
			b.Do("SET", b.Name+"_worker:own", "v", "EX", 60)
		}
		b.pass(g)
		if b.Size("") != 0 {
			t.Fatalf("judged at first sight; its own heartbeat is there: %t", own)
		}
		g.missed[b.store][id] = time.Now().Add(-2 * time.Minute)
		b.pass(g)
		if swept := b.Size("") == 1; swept != own {
			t.Errorf("swept: %t; its own heartbeat is there: %t", swept, own)
		}
	}
}

func TestSweeperWithoutLockOnlyLooks(t *testing.T) {
	b := newBench(t)
	b.deadWorker("m")
	first := b.group(time.Millisecond, time.Hour)
	second := b.group(time.Millisecond, time.Hour)
	b.pass(first)
	b.pass(second)
	for w := range second.missed[b.store] {
		second.missed[b.store][w] = time.Now().Add(-time.Minute) // it has been dead for a long time
	}
	second.confirmAfter, second.next = 2*time.Second, time.Hour
	b.pass(second)
	if b.Size("") != 0 {
		t.Fatal("swept without the lock")
	}
	if second.next > second.confirmAfter/2 {
		t.Errorf("looks again after %v, though whoever has the lock may be dead", second.next)
	}
	b.Do("DEL", b.Name+"_sweeper")
	b.pass(second)
	if b.Size("") != 1 {
		t.Fatal("not swept as soon as the lock was free")
	}
}

func TestSweeperSweepsLegacyClaims(t *testing.T) {
	b := newBench(t)
	dead, alive := redistest.Name(t), redistest.Name(t)
	b.Do("HSET", b.Name+"_processing", dead, "\x91\xa3m:f", alive, "\x91\xa3m:g")
	b.Do("SET", alive, "1", "EX", 60)
	t.Cleanup(func() { b.Do("DEL", alive) })
	g := b.group(time.Millisecond, time.Hour)
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

// A legacy worker that was missing once, but has ended its task since, gets the full time again.
func TestLegacyWorkerIsMissedAnew(t *testing.T) {
	b := newBench(t)
	g := b.group(time.Minute, time.Hour)
	b.Do("HSET", b.Name+"_processing", "gone", "m")
	for _, c := range []struct{ claims, missed int }{{1, 1}, {0, 0}} {
		if dead, err := g.findDeadLegacy(t.Context(), b.store, c.claims); err != nil || len(dead) > 0 ||
			len(g.missed[b.store]) != c.missed {
			t.Errorf("%d claims: dead %v, %v, missed %v, expected %d", c.claims, dead, err, g.missed[b.store],
				c.missed)
		}
	}
}
