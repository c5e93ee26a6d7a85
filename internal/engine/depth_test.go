package engine

import (
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// A worker notes a depth once in ten seconds, and that there is none once in minutes; what another worker notes it
// leaves alone for a while.
func TestDepthsAreNotedOnce(t *testing.T) {
	asked := 0
	h := newBeating(t, func(request []byte) faultnet.Fault {
		if calls(redisstore.ScriptDepth)(request) {
			asked++
		}
		return faultnet.None
	})
	h.Do("SCRIPT", "LOAD", redisstore.ScriptDepth.Source)
	at := time.Unix(1_735_776_013, 5e8) // 6.5 s before the next ten seconds, 46.5 s before the next minute
	h.Must(h.beat(bg))
	h.Do("DEL", h.Name+"_depths")
	h.lane.depth = laneDepth{}
	for _, c := range []struct {
		what       string
		pending    int
		next, rest time.Duration
	}{
		{"empty from the first look on", 0, 6500 * time.Millisecond, 276500 * time.Millisecond},
		{"noted by another", 0, 26500 * time.Millisecond, 26500 * time.Millisecond},
		{"tasks wait", 3, 6500 * time.Millisecond, 6500 * time.Millisecond},
		{"tasks wait still", 2, 6500 * time.Millisecond, 6500 * time.Millisecond},
		{"no more", 0, 6500 * time.Millisecond, 46500 * time.Millisecond},
		{"empty still", 0, 6500 * time.Millisecond, 276500 * time.Millisecond},
	} {
		if c.what != "noted by another" {
			at = at.Add(time.Minute)
		}
		h.Do("DEL", h.Name)
		for range c.pending {
			h.Do("RPUSH", h.Name, "m")
		}
		asked, h.lane.depth.next, h.lane.depth.rest = 0, time.Time{}, time.Time{}
		begun := time.Now()
		h.noteDepths(bg, at)
		h.noteDepths(bg, at)
		took := time.Since(begun)
		if d := &h.lane.depth; asked != 1 || d.next.Sub(begun) < c.next || d.next.Sub(begun) > c.next+took ||
			d.rest.Sub(begun) < c.rest || d.rest.Sub(begun) > c.rest+took {
			t.Errorf("%s: asked %d times, again after %v and %v, expected %v and %v", c.what, asked,
				d.next.Sub(begun), d.rest.Sub(begun), c.next, c.rest)
		}
	}
	h.Do("DEL", h.Name)
	kept, err := h.lane.store.Depths(bg, redisstore.GrainSecond)
	if h.Must(err); len(kept) != 5 {
		t.Errorf("%v, expected five depths", kept)
	}
}

// When the mover finds tasks, a queue that was empty is not left alone for minutes.
func TestDepthOfAFilledQueue(t *testing.T) {
	h := newBeating(t, nil)
	h.Must(h.beat(bg))
	d := &h.lane.depth
	if d.due(d.next, h.lane.waiting.Load()) || d.rest.Sub(d.next) < time.Minute {
		t.Errorf("the depth of an empty queue is due from %v on, and at the latest at %v", d.next, d.rest)
	}
	h.Do("RPUSH", h.Name, "m")
	m := newMover(h.lane.store.Src, []*lane{h.lane}, loop.NewJournal(h.bench.log.logger()))
	m.onPending = func(*lane, bool) {}
	_, err := m.round(bg)
	h.Must(err)
	if !d.due(d.next, h.lane.waiting.Load()) || d.due(d.next.Add(-1), h.lane.waiting.Load()) {
		t.Error("the depth of a queue with a task is not due with the next ten seconds")
	}
	d.next = time.Time{}
	h.Do("DEL", h.Name, h.Name+"_depths")
	h.noteDepths(bg, time.UnixMilli(redistest.Time(t, h.Conn)))
	if h.lane.waiting.Load() {
		t.Error("the queue is empty again, and seems not to be")
	}
}

// A heartbeat does not fail with what it notes.
func TestDepthsThatFail(t *testing.T) {
	h := newBeating(t, func(request []byte) faultnet.Fault {
		if calls(redisstore.ScriptDepth)(request) {
			return faultnet.DropRequest
		}
		return faultnet.None
	})
	h.Do("SCRIPT", "LOAD", redisstore.ScriptDepth.Source)
	h.Must(h.beat(bg))
	if h.lane.depth.next.IsZero() || !h.lane.fresh(quietLife) {
		t.Error("depths were not asked for, or the heartbeat is not confirmed")
	}
}
