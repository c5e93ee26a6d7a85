package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/state"
)

// stepper runs the tasks of a worker one at a time, in the goroutine of its caller, for package delayedtest. It
// replaces the loops of the worker and uses their parts. Its exported methods are those of seam.Stepper. Callers may
// run as many tasks at once as the worker has executors, each in a goroutine of its own.
type stepper struct {
	w *Worker

	claiming sync.Mutex // held while tasks are claimed and received

	mu       sync.Mutex            // protects the following
	returned map[*lane.Claim]error // what handlers have returned
}

// NewStepper registers a worker in Redis, in place of Run.
func NewStepper(ctx context.Context, w *Worker) (seam.Stepper, error) {
	if !w.phase.CompareAndSwap(int32(state.New), int32(state.Running)) {
		return nil, redisstore.ErrClosed
	}
	if err := w.makeReady(); err != nil {
		return nil, err
	}
	w.decider.Isolation = nil // tests run in one process
	s := &stepper{w: w, returned: map[*lane.Claim]error{}}
	w.runner.OnReturn = func(c *lane.Claim, err error) {
		s.mu.Lock()
		s.returned[c] = err
		s.mu.Unlock()
	}
	if err := s.Beat(ctx); err != nil {
		return nil, err
	}
	return s, s.Look(ctx) // for parked tasks that this worker can run
}

func (s *stepper) Look(ctx context.Context) error {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	for _, g := range s.w.slotGroups {
		if _, err := g.mover.Round(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stepper) Sweep(ctx context.Context) error {
	for _, g := range s.w.slotGroups {
		if err := g.sweeper.SweepAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stepper) Beat(ctx context.Context) error {
	for _, g := range s.w.slotGroups {
		if err := g.heartbeat.Beat(ctx); err != nil {
			return err
		}
		for _, l := range g.lanes {
			if err := s.obeyControl(ctx, l); err != nil {
				return err
			}
		}
	}
	s.w.announcer.Announce(ctx)
	return nil
}

func (s *stepper) Step(ctx context.Context) (*seam.Run, time.Duration, error) {
	suspects := true
	for {
		c, ready, err := s.claimAny(ctx, suspects)
		if err != nil {
			return nil, 0, err
		}
		if c != nil {
			r, wait, err := s.runClaim(c, ready) //nolint:contextcheck // claimed tasks are finished after ctx has ended
			if err == nil && r.Outcome == lifecycle.Ends[lifecycle.OutcomeDefer].Name {
				// It is a suspect, and still pending. One that came from the list of suspects cannot start beside the
				// tasks that run, so this step takes no other either.
				suspects = suspects && !c.Batch.Suspects
				continue
			}
			return r, wait, err
		}
		wait, again, err := s.findDue(ctx, suspects)
		if err != nil || !again {
			return nil, wait, err
		}
	}
}

// claimAny claims one task from the first queue that has any, suspects last, and only if they are asked for.
func (s *stepper) claimAny(ctx context.Context, suspectsToo bool) (c *lane.Claim, ready bool, err error) {
	lists := []bool{false, true}
	if !suspectsToo {
		lists = lists[:1]
	}
	for _, l := range s.w.lanes {
		for _, suspects := range lists {
			if c, ready, err = s.claimOne(ctx, l, suspects); c != nil || err != nil {
				return c, ready, err
			}
		}
	}
	return nil, false, nil
}

// claimOne claims one task of a queue; ready reports whether it can run here.
func (s *stepper) claimOne(ctx context.Context, l *lane.Lane, suspects bool) (c *lane.Claim, ready bool, err error) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	if l.QueuePaused() { // it may have been resumed
		if err := s.w.ReadControl(ctx, l); err != nil {
			return nil, false, err
		}
	}
	var claims []*lane.Claim
	for len(claims) == 0 && !suspects && l.HasParked() {
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
	if s.w.receiver.Receive(ctx, claims) == 0 {
		return claims[0], false, nil
	}
	e := s.w.exec
	switch {
	case e.LoneTask() != claims[0]:
	case lane.InHand(s.w.lanes) == 1:
		s.w.receiver.StartLone(ctx, claims[0])
	case e.N > 1: // it must wait until the worker has no other task
		e.ForgetLone(claims[0])
		l.Finisher.Add(lane.Ending{Claim: claims[0], Outcome: lifecycle.OutcomeDefer})
		return claims[0], false, nil
	default: // a handler has asked for this task and waits for it
		e.ForgetLone(claims[0])
		e.Add(claims)
	}
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return claims[0], e.Take(time.Now()) == claims[0], nil
}

// runClaim runs a claimed task, if it is ready, and reports its ending to Redis.
func (s *stepper) runClaim(c *lane.Claim, ready bool) (r *seam.Run, wait time.Duration, err error) {
	r = &seam.Run{Queue: c.Lane.Store.Name, Message: c.Raw}
	if !ready {
		return r, 0, s.finish(c, r)
	}
	c.Started = time.Now()
	done := false
	leave := s.occupy(c)
	// Deferred, because a handler may end this goroutine by runtime.Goexit, as t.FailNow does.
	defer func() {
		e := s.w.exec
		leave()
		e.Mu.Lock()
		e.TaskEnded(c, done, time.Since(c.Started))
		e.Mu.Unlock()
		s.mu.Lock()
		r.Err, r.Called = s.returned[c]
		delete(s.returned, c)
		s.mu.Unlock()
		err = s.finish(c, r)
	}()
	done = s.w.runner.Execute(c)
	return r, 0, nil
}

// occupy stores a task that starts in a free slot, or in place of the task around it, as tasks may run within tasks.
func (s *stepper) occupy(c *lane.Claim) (leave func()) {
	slots := s.w.exec.Slots
	for i := range slots {
		if slots[i].CompareAndSwap(nil, c) {
			return func() { slots[i].Store(nil) }
		}
	}
	around := slots[0].Swap(c)
	return func() { slots[0].Store(around) }
}

// finish reports the ending of a task to Redis, and notes it in r.
func (s *stepper) finish(c *lane.Claim, r *seam.Run) error {
	f := s.w.finishers[c.Lane.Index]
	r.Outcome = lifecycle.Ends[lifecycle.OutcomeDone].Name
	for tries := 1; ; tries++ {
		f.Mu.Lock()
		for i := range f.Pending { // Redis may answer that the task must end in another way
			if e := &f.Pending[i]; e.Claim == c {
				r.Outcome, r.Failed = lifecycle.Ends[e.Outcome].Name, e.Outcome.Failed()
			}
		}
		f.Mu.Unlock()
		worked, ok := f.Publish()
		switch {
		case ok && !worked:
			return s.obeyControl(context.Background(), c.Lane)
		case !ok && tries == 3:
			return fmt.Errorf("delayed: Redis has not confirmed how task %q ended", c.Msg.Meta.ID)
		}
	}
}

// obeyControl carries out what the control hash says, if it has changed.
func (s *stepper) obeyControl(ctx context.Context, l *lane.Lane) error {
	select {
	case <-l.Control.Poked:
		return s.w.ReadControl(ctx, l)
	default:
		return nil
	}
}

// findDue makes due tasks pending, and reports whether there were any. If not, wait is the time until the next is due;
// negative: there is none. suspects reports whether a pending suspect would have been taken.
func (s *stepper) findDue(ctx context.Context, suspects bool) (wait time.Duration, again bool, err error) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	wait = -1
	for _, g := range s.w.slotGroups {
		todos, err := redisstore.Check(ctx, g.mover.Src, g.mover.Stores)
		if err != nil {
			return 0, false, err
		}
		for i, t := range todos {
			switch {
			case t.Pending > 0 || suspects && t.Suspects > 0:
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
			if _, err := g.mover.Round(ctx); err != nil {
				return 0, false, err
			}
		}
	}
	return wait, again, nil
}

func (s *stepper) Stop() { s.w.cancelHandlers(lane.ErrShutdown) }

func (s *stepper) Close() error {
	w := s.w
	w.cancelHandlers(lane.ErrShutdown)
	lane.GiveBack(w.exec.TakeBack(nil))
	var errs []error
	for _, f := range w.finishers {
		if _, ok := f.Publish(); !ok {
			errs = append(errs, fmt.Errorf("delayed: queue %q: Redis has not confirmed how tasks ended",
				f.Lane.Store.Name))
		}
	}
	for _, g := range w.slotGroups {
		g.heartbeat.Link.HangUp()
	}
	if len(errs) == 0 {
		errs = append(errs, w.unregister())
	}
	w.phase.Store(int32(state.Stopped))
	w.events.Stop(w.cfg.listenGrace())
	return errors.Join(errs...)
}
