// Package semaphore bounds how many handlers of all workers together do something at the same time, such as calls of a
// service that allows ten connections:
//
//	sem, err := semaphore.New(rdb, semaphore.Config{Name: "payments", Places: 10})
//	…
//	charge := delayed.Func(payments.Charge, delayed.Middleware(sem.Middleware))
//
// A task that finds no place free lets its executor go and comes again a little later. A place whose holder dies is
// free again when its lease has ended; a holder that lives renews its lease. The places are in Redis, in one sorted set
// for each name, and all programs that give the same name and prefix share them.
package semaphore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
)

// Errors of acquiring and holding a place.
var (
	// ErrBusy reports that all places are taken.
	ErrBusy = errors.New("semaphore: all places are taken")

	// ErrLost reports that the lease of a place could not be renewed in time, so that others may have the place now. It
	// is the cause of the context that Middleware gives to a handler which has lost its place.
	ErrLost = errors.New("semaphore: the place is lost: Redis could not be asked for as long as its lease")
)

// MaxPlaces is the largest number of places.
const MaxPlaces = redisstore.MaxPlaces

// maxName bounds the name of a semaphore, in bytes.
const maxName = 128

// shortestLease is the shortest lease: a shorter one could not be renewed in time.
const shortestLease = time.Second

// Config defines what a semaphore bounds.
type Config struct {
	// Name is the name that all who share the places give: 1 to 128 bytes of printable characters without spaces.
	Name string
	// Places is how many holders there may be at a time: 1 to MaxPlaces. If programs give different numbers, as during
	// a deploy, each goes by its own when it acquires a place.
	Places int
	// Lease is how long a place stays taken after its holder has died or lost Redis, at least a second. Holders renew
	// it three times in that time. Defaults to 30 s.
	Lease time.Duration
	// Again is after how long a task that found no place comes again, and Acquire looks again, give or take half, so
	// that not all come together; in whole milliseconds. Defaults to 1 s.
	Again time.Duration
}

// Semaphore is a number of places that programs share. It is safe for concurrent use, and needs no Close.
type Semaphore struct {
	cfg   Config
	store *redisstore.Semaphore
	who   string // what the names of holders begin with
}

// New returns a semaphore on a Redis handle. It does not connect. Closing rdb ends it.
func New(rdb *delayed.Store, cfg Config) (*Semaphore, error) {
	if cfg.Lease == 0 {
		cfg.Lease = 30 * time.Second
	}
	if cfg.Again == 0 {
		cfg.Again = time.Second
	}
	strange := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }
	switch {
	case cfg.Name == "" || len(cfg.Name) > maxName || strings.ContainsFunc(cfg.Name, strange):
		return nil, fmt.Errorf("semaphore: Config.Name is %.200q: expected 1 to %d bytes of printable characters "+
			"without spaces", cfg.Name, maxName)
	case cfg.Places < 1 || cfg.Places > MaxPlaces:
		return nil, fmt.Errorf("semaphore: Config.Places is %d: expected 1 to %d", cfg.Places, MaxPlaces)
	case cfg.Lease < shortestLease:
		return nil, fmt.Errorf("semaphore: Config.Lease is %v: expected at least %v, or 0 for 30 s", cfg.Lease,
			shortestLease)
	case cfg.Again < time.Millisecond:
		return nil, fmt.Errorf("semaphore: Config.Again is %v: expected at least 1 ms, or 0 for 1 s", cfg.Again)
	}
	parts, err := seam.Handle(rdb)
	if err != nil {
		return nil, fmt.Errorf("semaphore: %w", err)
	}
	src, _ := parts.Source.(redisstore.Source)
	host, _ := os.Hostname()
	return &Semaphore{
		cfg, redisstore.NewSemaphore(src, parts.Prefix, cfg.Name), fmt.Sprintf("%s:%d:", host, os.Getpid()),
	}, nil
}

// TryAcquire takes a place. If all are taken it returns ErrBusy at once, and if ctx ends before Redis has answered, an
// error that wraps that of ctx. An answer that took longer than the lease is an error too. The caller must release the
// place.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Place, error) {
	if s == nil || s.store == nil {
		return nil, errors.New("semaphore: the *Semaphore is nil or zero: make it with New")
	}
	p := &Place{sem: s, holder: s.who + rand.Text(), lost: make(chan struct{})}
	asked := time.Now()
	ok, err := s.store.Acquire(ctx, p.holder, s.cfg.Places, s.cfg.Lease)
	switch {
	case err != nil:
		// Perhaps the place is taken, and only the answer was lost.
		go p.giveBack() //nolint:errcheck,gosec,contextcheck // ctx may have ended
		return nil, fmt.Errorf("semaphore: %w", orEnd(ctx, err))
	case !ok:
		return nil, ErrBusy
	case time.Since(asked) >= s.cfg.Lease: // Redis is very slow, or this process stood still
		go p.giveBack() //nolint:errcheck,gosec,contextcheck // ctx may have ended
		return nil, fmt.Errorf("semaphore: Redis gave a place of %q, but the answer took longer than the lease of %v",
			s.cfg.Name, s.cfg.Lease)
	}
	p.keep(asked) //nolint:contextcheck // the place outlives ctx
	return p, nil
}

// orEnd returns why a call of Redis failed. If ctx has ended, that is why.
func orEnd(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	// The deadlines of connections end up to a moment before ctx does.
	if deadline, ok := ctx.Deadline(); cause == nil && ok && !time.Now().Before(deadline) {
		cause = context.DeadlineExceeded
	}
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// Acquire takes a place, and waits for one if all are taken; whoever waits looks again from time to time, so that those
// who wait are served in no order. If ctx ends before, Acquire returns its error. A handler that waits keeps its
// executor busy: Middleware does not. The caller must release the place.
func (s *Semaphore) Acquire(ctx context.Context) (*Place, error) {
	for {
		p, err := s.TryAcquire(ctx)
		if !errors.Is(err, ErrBusy) {
			return p, err
		}
		select {
		case <-time.After(s.again()):
		case <-ctx.Done():
			return nil, fmt.Errorf("semaphore: waiting for one of %d places of %q: %w", s.cfg.Places, s.cfg.Name,
				context.Cause(ctx))
		}
	}
}

// again returns after how long to look again.
func (s *Semaphore) again() time.Duration {
	d := time.Duration(float64(s.cfg.Again) * (0.5 + mathrand.Float64()))
	return min(max(d, time.Millisecond), math.MaxInt64/4)
}

// Middleware has tasks run only with a place: with delayed.Middleware it stands around one function, with Worker.Use
// around all of a worker. A task that finds none is snoozed, which spends no retry, and comes again after about
// Config.Again; its TTL and Deadline bound that. If the place is lost, the handler's context ends with the cause
// ErrLost. When Redis cannot be asked, the task fails, and is tried again like every task that fails.
func (s *Semaphore) Middleware(next delayed.HandlerFunc) delayed.HandlerFunc {
	return func(ctx context.Context, t *delayed.Task) error {
		p, err := s.TryAcquire(ctx)
		if errors.Is(err, ErrBusy) {
			return delayed.Snooze(s.again())
		} else if err != nil {
			return err
		}
		defer p.Release() //nolint:errcheck,contextcheck // ctx may have ended; else the place ends with its lease
		held, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			select {
			case <-p.Lost():
				cancel(ErrLost)
			case <-held.Done():
			}
		}()
		return next(held, t)
	}
}

// Holders returns who has a place now: host, process id and a random text, with colons between.
func (s *Semaphore) Holders(ctx context.Context) ([]string, error) {
	if s == nil || s.store == nil {
		return nil, errors.New("semaphore: the *Semaphore is nil or zero: make it with New")
	}
	holders, err := s.store.Holders(ctx)
	if err != nil {
		return nil, fmt.Errorf("semaphore: %w", err)
	}
	return holders, nil
}
