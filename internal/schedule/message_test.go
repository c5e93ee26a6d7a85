package schedule

import (
	"bytes"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// TestTaskOfATick: the task has the tick's id and time. Options that count from the tick use that time, others stay
// unchanged.
func TestTaskOfATick(t *testing.T) {
	const apart = 1 << 40
	x := wire.Extra{Expiry: 5000, Deadline: 12345, RetryUntil: 0}
	later := wire.Extra{Expiry: 5000 + apart, Deadline: 12345, RetryUntil: 0}
	msg := wire.Message{Kind: wire.GoExtended, Path: "f", Meta: wire.Meta{Extra: &x}}
	d := Definition{Message: msg.Append(nil), Relative: RelativeTimes(&x, &later, apart)}
	if d.Relative != relativeExpiry {
		t.Errorf("the times %b count from the tick, expected %b", d.Relative, relativeExpiry)
	}
	now := time.UnixMilli(1_700_000_000_000)
	raw, err := d.taskAt("e@1", "p:e", now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.Parse(raw, wire.WorkerLimits)
	if err != nil {
		t.Fatal(err)
	}
	m := got.Meta
	if m.ID != "e@1" || m.EnqueuedAt != now.UnixMilli() || m.Extra.Expiry != now.UnixMilli()+5000 ||
		m.Extra.Deadline != 12345 || m.Extra.RetryUntil != 0 {
		t.Errorf("found %+v with %+v", m, m.Extra)
	}
	if m.Extra.Lock != "p:e" || m.Extra.LockLife != OverlapLife.Milliseconds() {
		t.Errorf("the lock is %q for %d ms", m.Extra.Lock, m.Extra.LockLife)
	}
	if d.Path() != "f" {
		t.Errorf("the path is %q", d.Path())
	}
	// So have Go tasks of legacy queues, and Python tasks of all other queues.
	for _, msg := range []wire.Message{
		{Kind: wire.GoPlain, Path: "f"},
		{Kind: wire.PyExtended, Path: "m:f", Payload: wire.AppendArrayHeader(nil, 0)},
	} {
		d = Definition{Message: msg.Append(nil)}
		if raw, err = d.taskAt("e@2", "p:e", now); err != nil {
			t.Fatal(err)
		}
		if got, err = wire.Parse(raw, wire.WorkerLimits); err != nil || got.Meta.ID != "e@2" ||
			got.Meta.EnqueuedAt != now.UnixMilli() || got.Meta.Extra == nil || got.Meta.Extra.Lock != "p:e" {
			t.Errorf("%s: %v, found %+v", msg.Path, err, got.Meta)
		}
	}
	// Python tasks of legacy queues carry neither ids nor times.
	classic := wire.Message{Kind: wire.Py, Path: "m:f", Payload: wire.AppendArrayHeader(nil, 0)}
	d = Definition{Message: classic.Append(nil)}
	if raw, err = d.taskAt("e@1", "", now); err != nil || !bytes.Equal(raw, d.Message) {
		t.Errorf("%v, %x, expected %x", err, raw, d.Message)
	}
}
