package web

import (
	"context"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redisstore"
)

// queues describes all queues.
func (h *history) queues() []inspect.Queue {
	h.T.Helper()
	queues, err := h.ins.Queues(h.T.Context())
	h.Must(err)
	return queues
}

// TestLook finds entries that nobody ticks, and tasks that cannot be read, in a queue that its clock is ahead of.
func TestLook(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	q := delayed.NewQueue("mail", h.rdb)
	for _, name := range []string{"hourly", "paused"} {
		h.Must(q.Periodic().Set(t.Context(), delayed.Entry{
			Name: name, Spec: "@hourly", Task: delayed.NewGoTask("app/mail.Digest"),
		}))
	}
	h.Must(q.Periodic().Pause(t.Context(), "paused"))
	_, err := q.Enqueue(t.Context(), delayed.NewGoTask("app/mail.Welcome"))
	h.Must(err)
	for range 2 {
		h.Do("RPUSH", "mail", "no message")
		h.Do("RPUSH", "mail_noti", "1")
	}
	queues := h.queues()
	found, err := look(t.Context(), h.ins, queues)
	h.Must(err)
	if len(found.late) != 0 || len(found.samples) != 1 || found.samples[0].Unreadable != 2 {
		t.Errorf("found %+v", found)
	}
	queues[0].At = queues[0].At.Add(2 * time.Hour)
	found, err = look(t.Context(), h.ins, queues)
	h.Must(err)
	if len(found.late) != 1 || found.late[0].Name != "hourly" || found.late[0].Late < time.Hour {
		t.Errorf("two hours later late are %+v", found.late)
	}
	queues[0].Err = context.Canceled // none is looked at that cannot be
	found, err = look(t.Context(), h.ins, queues)
	if err != nil || len(found.late) > 0 {
		t.Errorf("late in a queue that cannot be read are %+v, %v", found.late, err)
	}
}

// TestFailingIn adds up what has failed lately.
func TestFailingIn(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	for _, ago := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour} {
		h.addGrain(redisstore.GrainMinute, h.now.Add(-ago), 10)
	}
	found, err := failingIn(t.Context(), h.ins, "mail", h.now)
	h.Must(err)
	if want := (failing{"mail", "app/mail.Welcome", 20, 10}); len(found) != 1 || found[0] != want {
		t.Errorf("found %+v, expected %+v", found, want)
	}
}
