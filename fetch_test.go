package delayed

import "testing"

// A task whose notification got lost wakes nobody; the worker finds it all the same when it looks at its queues.
func TestLostWakeUpIsNoticed(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 2)
	f := b.fn("f", func(i int) { ran <- i })
	cfg := b.config()
	cfg.NoSweeper = true // it would mend the list
	w := b.work(cfg, f)
	b.delay(f, 1)
	await(b, "a task with a notification", ran) // the worker waits for the next notification now
	b.do("RPUSH", b.name, Call(f, 2).msg.Append(nil))
	w.moveNow()
	if i := await(b, "the task without one", ran); i != 2 {
		t.Errorf("task %d ran", i)
	}
}
