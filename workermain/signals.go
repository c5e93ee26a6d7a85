package workermain

import (
	"context"
	"os"
	"os/signal"
)

// order is the meaning of a signal.
type order struct {
	signal string // its name
	do     action
}

type action int

const (
	ignore action = iota
	stop
	quiet
	pause
	resume
)

// notify delivers the signals of orders to the channel until forget is called.
func notify() (signals <-chan os.Signal, forget func()) {
	c := make(chan os.Signal, 16)
	for sig := range orders {
		// A signal that was ignored at the start, as by nohup, stays ignored.
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	return c, func() { signal.Stop(c) }
}

// obey carries out an order; stopWork ends ctx. It returns true if the program must exit at once.
func (p *program) obey(ctx context.Context, sig os.Signal, stopWork func()) (exit bool) {
	o := orders[sig]
	log := p.log.WithField("signal", o.signal)
	stopping := ctx.Err() != nil
	switch {
	case o.do == stop && stopping:
		log.Warn("exiting at once: tasks that still run are left to other workers")
		return true
	case o.do == stop:
		log.Info("stopping; a second signal exits at once")
		stopWork()
	case stopping:
		// Service managers send CONT after TERM, so that a halted process gets to handle TERM.
	case o.do == quiet:
		log.Info("no more tasks until the program is started again")
		p.worker.Quiet()
	case o.do == pause:
		p.worker.Pause()
	case o.do == resume:
		p.worker.Resume()
	}
	return false
}
