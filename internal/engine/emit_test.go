package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/godelayed/delayed/event"
)

// TestEventOfAHeartbeatThatCannotBeRenewed: listeners get the event once the heartbeat may have expired, not at the
// first failure.
func TestEventOfAHeartbeatThatCannotBeRenewed(t *testing.T) {
	b := newBench(t)
	w, h := b.listened(b.config())
	beat := w.slotGroups[0].heartbeat
	l := w.lanes[0]
	fail := errors.New("away")
	beat.CheckExpired(fail) // it was not registered yet
	now := time.Now()
	l.Confirmed.Store(&now)
	beat.CheckExpired(fail)
	old := now.Add(-w.cfg.HeartbeatLife)
	l.Confirmed.Store(&old)
	beat.CheckExpired(fail)
	beat.CheckExpired(fail)
	b.Do("SET", b.Name+"_worker:"+w.ID(), "v", "PX", 60000) // it had not expired
	for range 2 {
		b.Must(beat.Beat(t.Context()))
	}
	beat.Link.HangUp()
	w.events.Start(w.log)
	w.events.Stop(patience)
	events := h.of()
	if len(events) != 2 || events[0].Kind != event.HeartbeatLost || events[1].Kind != event.HeartbeatRegained ||
		!errors.Is(events[0].Err, fail) || events[0].Queue != b.Name {
		t.Errorf("found %+v", events)
	}
}
