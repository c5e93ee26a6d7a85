package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
)

// stepper is a worker whose tasks run one at a time, in the goroutine of whoever asks for one: for package delayedtest.
// It takes the place of the worker's loops, and uses what they use.
type stepper struct {
	w *Worker

	claiming sync.Mutex // claims are made and sorted one at a time

	mu    sync.Mutex // protects the following
	ended map[*Claim]error
}

// outcomeNames are what seam.Run calls the outcomes.
var outcomeNames = [Outcomes]string{
	OutcomeRetry: "retry", OutcomeSnooze: "snoozed", OutcomeArchive: "archived", OutcomePark: "parked",
	OutcomeRelease: "released",
	OutcomeDefer:   "deferred", outcomeForward: "forwarded", OutcomeComplete: "done", outcomeGather: "gathered",
	outcomeCancel: "canceled",
}

// NewStepper makes a worker known to Redis, in place of Run.
func NewStepper(ctx context.Context, w *Worker) (*stepper, error) {
	if !w.Phase.CompareAndSwap(int32(phaseNew), int32(PhaseRunning)) {
		return nil, redisstore.ErrClosed
	}
	if err := w.attach(); err != nil {
		return nil, err
	}
	s := &stepper{w: w, ended: map[*Claim]error{}}
	w.heard = func(c *Claim, err error) {
		s.mu.Lock()
		s.ended[c] = err
		s.mu.Unlock()
	}
	if err := s.Beat(ctx); err != nil {
		return nil, err
	}
	return s, s.Look(ctx) // there may be parked tasks of functions that this worker knows
}

// Look implements seam.Stepper.
func (s *stepper) Look(ctx context.Context) error {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	for _, g := range s.w.Groups {
		if _, err := g.Mover.Look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Sweep implements seam.Stepper.
func (s *stepper) Sweep(ctx context.Context) error {
	for _, g := range s.w.Groups {
		if err := g.Sweeper.SweepAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Beat implements seam.Stepper.
func (s *stepper) Beat(ctx context.Context) error {
	for _, g := range s.w.Groups {
		if err := g.Heartbeat.Beat(ctx); err != nil {
			return err
		}
		for _, l := range g.lanes {
			if err := s.heed(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// Step implements seam.Stepper.
func (s *stepper) Step(ctx context.Context) (*seam.Run, time.Duration, error) {
	for {
		c, ready, err := s.claimAny(ctx)
		if err != nil {
			return nil, 0, err
		}
		if c != nil {
			r, wait, err := s.run(c, ready) //nolint:contextcheck // what was claimed is brought to its end after ctx
			if err == nil && r.Outcome == outcomeNames[OutcomeDefer] {
				continue // it is a suspect, and pending still
			}
			return r, wait, err
		}
		wait, again, err := s.look(ctx)
		if err != nil || !again {
			return nil, wait, err
		}
	}
}

// claimAny takes one task of the first queue that has any, suspects last.
func (s *stepper) claimAny(ctx context.Context) (c *Claim, ready bool, err error) {
	for _, l := range s.w.Lanes {
		for _, suspects := range []bool{false, true} {
			if c, ready, err = s.claim(ctx, l, suspects); c != nil || err != nil {
				return c, ready, err
			}
		}
	}
	return nil, false, nil
}

// claim takes one task of a queue; ready says whether it can run here.
func (s *stepper) claim(ctx context.Context, l *Lane, suspects bool) (c *Claim, ready bool, err error) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	if l.QueuePaused() { // nobody has told that it is no longer
		if err := s.w.Look(ctx, l); err != nil {
			return nil, false, err
		}
	}
	var claims []*Claim
	for len(claims) == 0 && !suspects && l.Parked.Some.Load() {
		if claims, err = l.ClaimParked(ctx, 1); err != nil {
			return nil, false, err
		}
	}
	if len(claims) == 0 {
		if claims, _, err = l.Claim(ctx, redisstore.ClaimCall{Most: 1, Suspects: suspects}, nil); err != nil ||
			len(claims) == 0 {
			return nil, false, err
		}
	}
	if s.w.Receive(ctx, claims) == 0 {
		return claims[0], false, nil
	}
	e := s.w.Exec
	switch {
	case e.LoneTask() != claims[0]:
	case s.w.InHand() == 1:
		s.w.startLone(ctx, claims[0])
	default: // within another task, which waits for it
		e.Dismiss(claims[0])
		e.Add(claims)
	}
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return claims[0], e.take(time.Now()) == claims[0], nil
}

// run runs a claimed task, if it is ready, and tells Redis what became of it.
func (s *stepper) run(c *Claim, ready bool) (r *seam.Run, wait time.Duration, err error) {
	r = &seam.Run{Queue: c.Lane.Store.Name, Message: c.Raw}
	if !ready {
		return r, 0, s.settle(c, r)
	}
	c.started = time.Now()
	done := false
	around := s.w.Exec.Slots[0].Swap(c) // tasks may run within tasks
	// Deferred, because a handler may end this goroutine by runtime.Goexit, as t.FailNow does.
	defer func() {
		e := s.w.Exec
		e.Slots[0].Store(around)
		e.Mu.Lock()
		e.Leave(c, done, time.Since(c.started))
		e.Mu.Unlock()
		s.mu.Lock()
		r.Err, r.Called = s.ended[c]
		delete(s.ended, c)
		s.mu.Unlock()
		err = s.settle(c, r)
	}()
	done = s.w.execute(c)
	return r, 0, nil
}

// settle tells Redis how a task ended, and notes it in r.
func (s *stepper) settle(c *Claim, r *seam.Run) error {
	f := c.Lane.Finisher
	r.Outcome = "done"
	for tries := 1; ; tries++ {
		f.mu.Lock()
		for i := range f.Pending { // Redis's answer may be that the task is to end in another way
			if e := &f.Pending[i]; e.Claim == c {
				r.Outcome, r.Failed = outcomeNames[e.Outcome], e.Tally == TallyFailed
			}
		}
		f.mu.Unlock()
		worked, ok := f.Work()
		switch {
		case ok && !worked:
			return s.heed(context.Background(), c.Lane)
		case !ok && tries == 3:
			return fmt.Errorf("delayed: Redis could not be told how task %q ended", c.Msg.Meta.ID)
		}
	}
}

// heed does what the control hash says, if there is news.
func (s *stepper) heed(ctx context.Context, l *Lane) error {
	select {
	case <-l.Control.Poke:
		return s.w.Look(ctx, l)
	default:
		return nil
	}
}

// look makes due tasks pending. If there was none, wait is the time until the next is due, negative for none.
func (s *stepper) look(ctx context.Context) (wait time.Duration, again bool, err error) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	wait = -1
	for _, g := range s.w.Groups {
		todos, err := redisstore.Check(ctx, g.Mover.Src, g.Mover.stores)
		if err != nil {
			return 0, false, err
		}
		for i, t := range todos {
			switch {
			case t.Pending+t.Suspects > 0:
				return 0, false, fmt.Errorf("delayed: queue %q has %d pending tasks and gives none away: is it paused?",
					g.lanes[i].Store.Name, t.Pending+t.Suspects)
			case t.Due == 0 || t.Group == 0:
				again = true
			}
			for _, due := range []time.Duration{t.Due, t.Group} {
				if due > 0 && (wait < 0 || due < wait) {
					wait = due
				}
			}
		}
		if again {
			if _, err := g.Mover.Look(ctx); err != nil {
				return 0, false, err
			}
		}
	}
	return wait, again, nil
}

// Stop implements seam.Stepper.
func (s *stepper) Stop() { s.w.Cancel(ErrShutdown) }

// Close implements seam.Stepper.
func (s *stepper) Close() error {
	w := s.w
	w.Cancel(ErrShutdown)
	w.GiveBack(w.Exec.TakeBack())
	var errs []error
	for _, l := range w.Lanes {
		if _, ok := l.Finisher.Work(); !ok {
			errs = append(errs, fmt.Errorf("delayed: queue %q: Redis could not be told how tasks ended", l.Store.Name))
		}
	}
	for _, g := range w.Groups {
		g.Heartbeat.Link.HangUp()
	}
	if len(errs) == 0 {
		errs = append(errs, w.Unregister())
	}
	w.Phase.Store(int32(PhaseStopped))
	w.Hooks.Stop(w.Cfg.ListenGrace())
	return errors.Join(errs...)
}
