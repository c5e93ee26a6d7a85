//go:build linux || darwin

package isolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/loop"
)

// Config defines how a Pool runs jobs. Every field but Args and Env must be set.
type Config struct {
	Args, Env []string // of children; nil: those of this process
	Limits    Limits
	MaxJobs   int           // that a child runs before another takes its place; 0: any number
	Idle      time.Duration // after which a child without a job ends, unless it is one of Ahead
	Ahead     int           // children that are started before there are jobs for them
	// Cause returns the byte by which a child learns why the context of a job has ended.
	Cause func(context.Context) byte
	// Output gets what children write to their standard error.
	Output io.Writer
	Log    loop.Journal
}

// Pool is a number of child processes that run jobs. There are as many as jobs have run at a time, and those that
// Config.Ahead defines. Its methods are safe for concurrent use.
type Pool struct {
	cfg Config

	spawns chan func() // functions for the spawner
	ended  chan struct{}

	mu      sync.Mutex
	idle    []*process // the one that has worked last comes last
	started bool
	closed  bool
	all     sync.WaitGroup // jobs, and goroutines of the pool
	closing context.Context
	close   context.CancelFunc // ends closing
	wake    chan struct{}      // wakes the keeper when children are missing; holds one element
	backoff loop.Backoff       // between children that do not start
	trouble loop.Complaints

	ungrouped loop.Complaints // about control groups
}

// mostTries is how many children a job is given to, if they die before they have read it.
const mostTries = 3

// errGivenUp reports that a job does not wait for a child any longer.
var errGivenUp = errors.New("given up")

// NewPool returns a pool without children.
func NewPool(cfg Config) *Pool {
	if cfg.Args == nil {
		cfg.Args = os.Args
	}
	if cfg.Env == nil {
		cfg.Env = os.Environ()
	}
	closing, cancel := context.WithCancel(context.Background())
	return &Pool{
		cfg: cfg, spawns: make(chan func()), ended: make(chan struct{}), closing: closing, close: cancel,
		wake: make(chan struct{}, 1),
	}
}

// Start starts the pool's goroutines and, if ahead, the children of Config.Ahead. Run calls it, too.
func (p *Pool) Start(ahead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started || p.closed {
		return
	}
	p.started = true
	if p.cfg.Limits.Memory > 0 {
		_, _ = delegatedGroups() // before there are children in the group of this process; newGroup gets the error
	}
	if !ahead {
		p.cfg.Ahead = 0
	}
	go p.spawner()
	p.all.Go(p.keep)
}

// spawner starts children on one thread, which lasts as long as the pool: Linux kills a child when the thread ends that
// has started it.
func (p *Pool) spawner() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	for spawn := range p.spawns {
		spawn()
	}
}

// spawn calls a function on the thread of the spawner.
func (p *Pool) spawn(do func()) {
	done := make(chan struct{})
	p.spawns <- func() {
		defer close(done)
		do()
	}
	<-done
}

func (p *Pool) newChild() (*process, error) {
	c, err := start(p.closing, p.spawn, p.cfg.Args, p.cfg.Env, p.cfg.Limits, p.cfg.Output)
	if err == nil && c.ungrouped != nil {
		p.cfg.Log.Trouble(&p.ungrouped, "the limit of memory holds for child processes, but not for what they start: "+
			"the delegated control group cannot be used", c.ungrouped)
	}
	return c, err
}

// keep starts children ahead, and ends those that have been idle for too long.
func (p *Pool) keep() {
	tick := time.NewTicker(max(p.cfg.Idle/4, 10*time.Millisecond))
	defer tick.Stop()
	for {
		for p.missing() {
			c, err := p.newChild()
			if errors.Is(err, ErrClosed) {
				return
			}
			if err != nil {
				p.cfg.Log.Trouble(&p.trouble, "child processes do not start", err)
				if !p.pause(context.Background()) {
					return
				}
				continue
			}
			p.relief()
			p.put(c)
		}
		select {
		case <-p.closing.Done():
			return
		case <-p.wake:
		case now := <-tick.C:
			p.retireIdle(now)
		}
	}
}

// missing reports whether fewer children are idle than Config.Ahead asks for.
func (p *Pool) missing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && len(p.idle) < p.cfg.Ahead
}

// retireIdle ends children that have been idle for too long, and forgets those that have died.
func (p *Pool) retireIdle(now time.Time) {
	var old []*process
	p.mu.Lock()
	spare := len(p.idle) - p.cfg.Ahead
	p.idle = slices.DeleteFunc(p.idle, func(c *process) bool {
		if !c.hasDied() && (spare <= 0 || now.Sub(c.idle) < p.cfg.Idle) {
			return false
		}
		spare--
		old = append(old, c)
		return true
	})
	p.mu.Unlock()
	for _, c := range old {
		c.retire()
	}
}

// pause waits before another child is started. It returns false if ctx or the pool ends.
func (p *Pool) pause(ctx context.Context) bool {
	p.mu.Lock()
	wait := p.backoff.Next()
	p.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-p.closing.Done():
	}
	return false
}

// relief notes that a child has started.
func (p *Pool) relief() {
	p.mu.Lock()
	p.backoff.Reset()
	p.mu.Unlock()
	p.cfg.Log.Relief(&p.trouble, "child processes start again")
}

// Run runs a job in a child, and returns its verdict. report gets the job's reports, one after the other. When ctx
// ends, the child has the time that patience returns to end the job; then it gets SIGTERM, and is killed soon after.
// While no child starts, Run tries again until ctx ends, and it takes another child if one has died before it has read
// the job. The error is a *DeathError, or it is ErrClosed or wraps the cause of ctx, if the job was not begun.
func (p *Pool) Run(
	ctx context.Context, job []byte, report func([]byte), patience func() Patience,
) (verdict []byte, err error) {
	p.Start(false)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	p.all.Add(1)
	p.mu.Unlock()
	defer p.all.Done()
	for tries := 1; ; tries++ {
		c, err := p.take(ctx, patience)
		if err != nil {
			return nil, err
		}
		verdict, death := c.run(ctx, job, report, p.cfg.Cause, patience)
		if death == nil {
			verdict = slices.Clone(verdict)
			p.giveBack(c)
			return verdict, nil
		}
		p.look()
		if !death.unread || tries == mostTries {
			return nil, death
		}
	}
}

// take returns a child without a job. It starts one if there is none.
func (p *Pool) take(ctx context.Context, patience func() Patience) (*process, error) {
	var trouble error
	for {
		if c := p.takeIdle(); c != nil {
			return c, nil
		}
		c, err := p.startFor(ctx, patience)
		switch {
		case err == nil:
			p.relief()
			return c, nil
		case errors.Is(err, ErrClosed):
			return nil, err
		case !errors.Is(err, errGivenUp):
			trouble = err
			p.cfg.Log.Trouble(&p.trouble, "child processes do not start", err)
			if p.pause(ctx) {
				continue
			}
		}
		cause := context.Cause(ctx)
		switch {
		case cause == nil:
			return nil, ErrClosed
		case trouble == nil:
			return nil, fmt.Errorf("%w: %w", cause, ErrNotBegun)
		}
		return nil, fmt.Errorf("%w: %w: %w", cause, ErrNotBegun, trouble)
	}
}

// startFor starts a child for a job whose context is ctx. If the job does not wait for it, another may use the child.
func (p *Pool) startFor(ctx context.Context, patience func() Patience) (*process, error) {
	type outcome struct {
		c   *process
		err error
	}
	started, gone := make(chan outcome), make(chan struct{})
	defer close(gone)
	p.all.Go(func() {
		c, err := p.newChild()
		select {
		case started <- outcome{c, err}:
		case <-gone:
			if err == nil {
				p.put(c)
			}
		}
	})
	select {
	case o := <-started:
		return o.c, o.err
	case <-ctx.Done():
	}
	late := time.NewTimer(patience().Start)
	defer late.Stop()
	select {
	case o := <-started:
		return o.c, o.err
	case <-late.C:
		return nil, errGivenUp
	}
}

// takeIdle returns the child that has worked last, nil if there is none. It wakes the keeper if too few are left; to
// wake it for each job would cost more than the job.
func (p *Pool) takeIdle() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.hasDied() { // while it had no job
			p.all.Go(c.retire)
			continue
		}
		if len(p.idle) < p.cfg.Ahead {
			p.look()
		}
		return c
	}
	return nil
}

// giveBack takes a child whose job is over. It ends children that have run enough jobs, or got a signal to end.
func (p *Pool) giveBack(c *process) {
	if p.cfg.MaxJobs > 0 && c.ran >= p.cfg.MaxJobs || c.signaled() {
		p.all.Go(c.retire)
		p.look()
		return
	}
	p.put(c)
}

// put makes a child available.
func (p *Pool) put(c *process) {
	c.idle = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// look wakes the keeper, because children may be missing.
func (p *Pool) look() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Close waits until all jobs are over, and ends the children. Run returns ErrClosed afterwards.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	p.close()
	p.mu.Unlock()
	p.all.Wait()
	var ending sync.WaitGroup
	for _, c := range p.idle {
		ending.Go(c.retire)
	}
	ending.Wait()
	if p.started {
		close(p.spawns)
		<-p.ended
	}
}
