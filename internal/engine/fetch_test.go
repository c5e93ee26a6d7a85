package engine

import (
	"context"
	"testing"
)

// A task whose notification was lost wakes no worker; its mover finds it all the same.
func TestLostWakeUpIsNoticed(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 2)
	f := b.fn("f", func(i int) { ran <- i })
	cfg := b.config()
	cfg.NoSweeper = true // it would repair the list
	w := b.work(cfg, f)
	b.delay(f, 1)
	await(b, "a task with a notification", ran) // the worker waits for the next notification now
	b.Do("RPUSH", b.Name, Call(f, 2).msg.Append(nil))
	w.pokeMovers()
	if i := await(b, "the task without one", ran); i != 2 {
		t.Errorf("task %d ran", i)
	}
}

// A mover notices suspects whose notification is gone, as it does with other tasks.
func TestSuspectsWithoutNotificationAreNoticed(t *testing.T) {
	r := newReceivingWorker(t, nil)
	for list, suspects := range map[string]bool{"": false, "_suspects": true} {
		r.b.Do("RPUSH", r.b.Name+list, "m")
		if _, err := r.slotGroups[0].mover.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case wake := <-r.fetcher.wakes:
			if wake.lane != 0 || wake.suspects != suspects {
				t.Errorf("%+v, expected suspects to be %v", wake, suspects)
			}
		default:
			t.Errorf("nobody is told of a task in %q", r.b.Name+list)
		}
		r.b.Do("DEL", r.b.Name+list)
	}
}

// A worker that stops while it waits puts back the notification that Redis may have sent just then, once its connection
// cannot take another.
func TestNotificationOfTheLastWaitGoesBack(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.b.Do("RPUSH", r.b.Name, "m")
	w := r.fetcher.waiters[0]
	w.blocking = true
	r.fetcher.mendAfterStop()
	if n := r.b.Size("_noti"); n != 0 {
		t.Errorf("%d notifications, of which the wait may take one", n)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w.run(ctx)
	r.fetcher.run(ctx)
	if n := r.b.Size("_noti"); n != 1 {
		t.Errorf("%d notifications for one task", n)
	}
}
