package delayed

import (
	"sync/atomic"
	"testing"
)

// Under load a further claim is under way when a suspect is found in the answer of the one before. What that brings must go back before the
// suspect starts.
func TestSuspectWaitsForTheClaimUnderWay(t *testing.T) {
	b := newBench(t)
	var running atomic.Bool
	entered, leave, stuck := make(chan struct{}), make(chan struct{}), make(chan struct{})
	suspect := b.fn("suspect", func() {
		running.Store(true)
		entered <- struct{}{}
		<-leave
	})
	var calls atomic.Int64
	f := b.fn("f", func(int) {
		if running.Load() {
			<-stuck // so that what is ready stays where it is
		}
		calls.Add(1)
	})
	const n = 6000
	tasks := make([]*Task, 0, n)
	for i := range n {
		tasks = append(tasks, Call(f, i))
	}
	if _, err := b.q.DelayMany(t.Context(), tasks[:n/2]...); err != nil {
		t.Fatal(err)
	}
	b.delaySuspect(suspect)
	if _, err := b.q.DelayMany(t.Context(), tasks[n/2:]...); err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch = 2, 800
	w := b.work(cfg, suspect, f)
	await(b, "the suspect", entered)
	b.until("only what runs is in hand", func() bool { return b.size("_processing:"+w.ID()) <= 2 })
	close(stuck)
	close(leave)
	b.until("all others have run", func() bool { return calls.Load() == n })
	b.idle()
}
