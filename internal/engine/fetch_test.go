package engine

import (
	"io"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/fetch"
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
	w.PokeMovers()
	if i := await(b, "the task without one", ran); i != 2 {
		t.Errorf("task %d ran", i)
	}
}

// A mover notices suspects whose notification is gone, as it does with other tasks.
func TestSuspectsWithoutNotificationAreNoticed(t *testing.T) {
	r := newReceivingWorker(t, nil)
	for list, suspects := range map[string]bool{"": false, "_suspects": true} {
		r.b.Do("RPUSH", r.b.Name+list, "m")
		if _, err := r.slotGroups[0].mover.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case wake := <-r.fetcher.Wakes:
			if wake.Lane != 0 || wake.Suspects != suspects {
				t.Errorf("%+v, expected suspects to be %v", wake, suspects)
			}
		default:
			t.Errorf("there is no notification of a task in %q", r.b.Name+list)
		}
		r.b.Do("DEL", r.b.Name+list)
	}
}

// A worker that stops while it waits puts back the notification that Redis may have sent just then: once its waits have
// ended, and once more at the end, for the notifications of tasks that it has given back.
func TestNotificationOfTheLastWaitGoesBack(t *testing.T) {
	r := newReceivingWorker(t, nil)
	r.fetcher.Waiters[0].Blocking = true
	run := newWorkerRun(r.Worker)
	r.b.Do("RPUSH", r.b.Name, "m")
	run.stop(func() {})
	if n := r.b.Size("_noti"); n != 1 {
		t.Errorf("%d notifications when waits have ended", n)
	}
	r.b.Do("DEL", r.b.Name+"_noti") // Redis has sent it to a connection that it did not know to be closed
	idle := make(chan struct{})
	close(idle)
	r.b.Must(run.finish(idle, ""))
	if n := r.b.Size("_noti"); n != 1 {
		t.Errorf("%d notifications at the end", n)
	}
}

// A wait that Redis refuses because of one key says nothing of the others, such as that something is due earlier on
// another queue: movers look at once.
func TestRefusedWaitMakesMoversLook(t *testing.T) {
	r := newReceivingWorker(t, nil)
	o := &idleOwner{}
	r.fetcher.Owner = o
	for _, c := range []struct {
		err   error
		looks int
	}{
		{redis.Error("WRONGTYPE Operation against a key holding the wrong kind of value"), 1},
		{io.EOF, 1}, // the mover cannot look either
	} {
		r.fetcher.HandleWake(t.Context(), fetch.WakeUp{Lane: -1, Waiter: r.fetcher.Waiters[0], Err: c.err})
		if o.looks != c.looks {
			t.Errorf("after %v movers were woken %d times, expected %d", c.err, o.looks, c.looks)
		}
	}
}
