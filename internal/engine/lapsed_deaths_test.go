package engine

import (
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/wire"
)

// Deaths that have lapsed do not make a task a suspect: it runs at once, beside others, and not from the list of
// suspects.
func TestLapsedDeathsAreNoSuspicion(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for _, tt := range []struct {
		ago  time.Duration
		want uint8
	}{{0, 9}, {lifecycle.DeathLife - time.Millisecond, 9}, {lifecycle.DeathLife, 0}, {2 * lifecycle.DeathLife, 0}} {
		c := &lane.Claim{}
		c.Msg.Meta.Deaths, c.Msg.Meta.DiedAt = 9, now.Add(-tt.ago).UnixMilli()
		if got := lane.SuspicionOf(c, now); got != tt.want {
			t.Errorf("%v after its last death: suspicion %d, expected %d", tt.ago, got, tt.want)
		}
	}
	r := newReceivingWorker(t, nil)
	task := wire.Message{Kind: wire.GoExtended, Path: r.f.Path(), Payload: wire.AppendString(nil, "x")}
	task.Meta = wire.Meta{ID: "id", Deaths: 9, DiedAt: time.Now().Add(-lifecycle.DeathLife - time.Minute).UnixMilli()}
	r.b.Do("RPUSH", r.b.Name, string(task.Append(nil)))
	r.b.Do("RPUSH", r.b.Name+"_noti", "1")
	r.took("a task whose nine deaths have lapsed", 1, 1, 1)
}
