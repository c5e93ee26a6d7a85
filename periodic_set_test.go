package delayed_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/wire"
)

// TestSetWithoutATaskKeepsItsOptions: options that count from the time of enqueueing still do so.
func TestSetWithoutATaskKeepsItsOptions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.q.Periodic()
	e := delayed.Entry{
		Name: "e", Spec: "@daily", Task: delayed.Call(b.fn("f", func() {})),
		Options: []delayed.Option{delayed.TTL(time.Hour), delayed.Header("tenant", "a")},
	}
	b.Must(p.Set(t.Context(), e))
	b.Must(p.Set(t.Context(), delayed.Entry{Name: "e", Spec: "@hourly"}))
	_, err := p.RunNow(t.Context(), "e")
	b.Must(err)
	m, err := wire.Parse([]byte(b.List("")[0]), wire.Default)
	b.Must(err)
	ends := time.UnixMilli(m.Meta.Extra.Expiry)
	if left := time.Until(ends); left < 50*time.Minute || left > time.Hour+time.Minute {
		t.Errorf("the TTL ends in %v, expected an hour", left)
	}
	if m.Meta.Extra.Headers["tenant"] != "a" {
		t.Errorf("found the headers %v", m.Meta.Extra.Headers)
	}
}
