package engine

import (
	"errors"
	"testing"
	"time"
)

// TestEventOfAHeartbeatThatCannotBeRenewed: listeners hear of it once the heartbeat may have expired, not at the first
// failure.
func TestEventOfAHeartbeatThatCannotBeRenewed(t *testing.T) {
	b := newBench(t)
	w, h := b.listened(b.config())
	beat := w.Groups[0].Heartbeat
	l := w.Lanes[0]
	fail := errors.New("away")
	beat.Missed(fail) // it was not registered yet
	now := time.Now()
	l.Confirmed.Store(&now)
	beat.Missed(fail)
	old := now.Add(-w.Cfg.HeartbeatLife)
	l.Confirmed.Store(&old)
	beat.Missed(fail)
	beat.Missed(fail)
	b.Do("SET", b.Name+"_worker:"+w.ID(), "v", "PX", 60000) // it had not expired
	for range 2 {
		b.Must(beat.Beat(t.Context()))
	}
	beat.Link.HangUp()
	w.Hooks.Start(w.Log)
	w.Hooks.Stop(patience)
	events := h.of()
	if len(events) != 2 || events[0].Kind != KindHeartbeatLost || events[1].Kind != KindHeartbeatRegained ||
		!errors.Is(events[0].Err, fail) || events[0].Queue != b.Name {
		t.Errorf("found %+v", events)
	}
}
