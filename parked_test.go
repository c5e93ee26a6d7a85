package delayed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

func TestParkedTasksAreVisible(t *testing.T) {
	b := newBench(t)
	w := b.work(b.config())
	before := time.UnixMilli(redistest.Time(t, b.Conn)).Add(-time.Second)
	ref := b.delay(b.fn("unknown", func(int) {}), 1)
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	parked := redistest.Time(t, b.Conn) // tasks that are parked in the same millisecond are in the order of their ids
	b.Until("the clock has gone on", func() bool { return redistest.Time(t, b.Conn) > parked })
	if _, err := b.q.Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil)); err != nil {
		t.Fatal(err)
	}
	b.Until("both are parked", func() bool { return b.Size("_parked") == 2 })
	page, total, err := b.q.Parked(t.Context(), 0, 10)
	if err != nil || total != 2 || len(page) != 2 {
		t.Fatalf("found %+v of %d, %v", page, total, err)
	}
	task := page[0]
	if task.ID != ref.ID() || task.State != state.Parked || task.Function != b.Name+".unknown" ||
		task.Reason != "unknown function" || task.Worker != w.ID() ||
		task.At.Before(before) || task.Due.Sub(task.At) < lifecycle.ParkedLife-time.Minute ||
		task.Due.Sub(task.At) > lifecycle.ParkedLife+time.Minute {
		t.Errorf("found %+v", task)
	}
	if page[1].Function != "m:f" || page[1].Reason != "python" {
		t.Errorf("found %+v", page[1])
	}
	if page, total, err = b.q.Parked(t.Context(), 1, 1); err != nil || total != 2 || len(page) != 1 ||
		page[0].Function != "m:f" {
		t.Errorf("second page: found %+v of %d, %v", page, total, err)
	}
	for _, wrong := range [][2]int{{-1, 1}, {0, 0}, {0, redisstore.MaxListPage + 1}} {
		if _, _, err := b.q.Parked(t.Context(), wrong[0], wrong[1]); err == nil ||
			!strings.Contains(err.Error(), "1 to 1000") {
			t.Errorf("Parked(%d, %d): found %v", wrong[0], wrong[1], err)
		}
	}
}
