package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"
)

// tableB drains with one goroutine that claims, some that call, and one that acknowledges everything done since its
// last command.
func (c *ceilingRun) tableB() error {
	c.head("(b) claim, decode, call, acknowledge: one claiming goroutine, c callers, one acknowledging goroutine",
		"tasks/s", "server CPU [s per 100,000]", "worker CPU [s per 100,000]")
	for _, k := range []int{1, 10, 50, 200} {
		for _, callers := range []int{1, 10, 50} {
			n := c.slow(c.n, 10)
			if k == 1 {
				n /= 4
			}
			if err := c.row(fmt.Sprintf("k=%d c=%d", k, callers), 3,
				func() (bareRun, error) { return c.drainApart(n, k, callers) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// tableG drains with fetchers that acknowledge and claim in one script.
func (c *ceilingRun) tableG() error {
	c.head("(g) acknowledge and claim in one script: one round trip for k tasks, f connections of c callers each",
		"tasks/s", "server CPU [s per 100,000]", "worker CPU [s per 100,000]")
	for _, x := range [][3]int{
		{1, 1, 1},
		{1, 1, 10},
		{1, 1, 50},
		{10, 10, 1},
		{10, 10, 4},
		{50, 10, 1},
		{50, 10, 4},
		{200, 10, 1},
		{200, 10, 4},
		{200, 50, 1},
	} {
		n := c.slow(c.n, 2)
		if x[0] == 1 {
			n /= 4
		}
		name := fmt.Sprintf("k=%d c=%d fetchers=%d", x[0], x[1], x[2])
		if err := c.row(name, 3, func() (bareRun, error) { return c.drainFused(n, x[0], x[1], x[2]) }); err != nil {
			return err
		}
	}
	return nil
}

// drained checks that n tasks were called and that none is left claimed.
func (c *ceilingRun) drained(n int, called *atomic.Int64) error {
	held, err := redis.Int(c.ctl.Do("HLEN", ceilingHeld))
	if err != nil {
		return err
	}
	if held != 0 || called.Load() != int64(n) {
		return fmt.Errorf("expected %d calls and nothing left claimed, found %d and %d: the prototype is wrong", n,
			called.Load(), held)
	}
	return nil
}

func (c *ceilingRun) drainFused(n, k, callers, fetchers int) (bareRun, error) {
	script := redis.NewScript(3, ackClaim)
	var called atomic.Int64
	handler := newBareHandler(func(int64, string) { called.Add(1) })
	var all []*bareFetcher
	for f := range fetchers {
		conn, err := redis.Dial("tcp", c.server.addr)
		if err != nil {
			return bareRun{}, err
		}
		defer conn.Close()
		all = append(all, &bareFetcher{
			conn: conn, script: script, name: "w" + strconv.Itoa(f) + "-", claim: k,
			callers: callers, handler: handler,
		})
	}
	prepare := func() error { return errors.Join(script.Load(c.ctl), c.fill(n)) }
	r, err := c.timed(prepare, func() (int, error) {
		errs := make([]error, len(all))
		var group sync.WaitGroup
		for i, f := range all {
			group.Go(func() { errs[i] = f.run() })
		}
		group.Wait()
		return n, errors.Join(errs...)
	})
	if err != nil {
		return r, err
	}
	return r, c.drained(n, &called)
}

func (c *ceilingRun) drainApart(n, k, callers int) (bareRun, error) {
	claims, err := redis.Dial("tcp", c.server.addr)
	if err != nil {
		return bareRun{}, err
	}
	defer claims.Close()
	ends, err := redis.Dial("tcp", c.server.addr)
	if err != nil {
		return bareRun{}, err
	}
	defer ends.Close()
	var called atomic.Int64
	a := &apart{
		claims: claims, ends: ends, script: redis.NewScript(2, claimOnce),
		handler: newBareHandler(func(int64, string) { called.Add(1) }),
		work:    make(chan []bareItem, max(1, callers/k+1)*2), acks: make(chan []string, 1024),
	}
	prepare := func() error { return errors.Join(a.script.Load(c.ctl), c.fill(n)) }
	r, err := c.timed(prepare, func() (int, error) { return n, a.run(k, callers) })
	if err != nil {
		return r, err
	}
	return r, c.drained(n, &called)
}

// apart claims and acknowledges on connections of their own.
type apart struct {
	claims, ends redis.Conn
	script       *redis.Script
	handler      *bareHandler
	work         chan []bareItem
	acks         chan []string
}

func (a *apart) run(k, callers int) error {
	var calling, acking sync.WaitGroup
	errs := make([]error, callers+2)
	for i := range callers {
		calling.Go(func() { errs[i] = a.call() })
	}
	acking.Go(func() { errs[callers] = a.acknowledge() })
	errs[callers+1] = a.fetch(k, callers)
	close(a.work)
	calling.Wait()
	close(a.acks)
	acking.Wait()
	return errors.Join(errs...)
}

// fetch claims until the list is empty, and spreads each claim over the callers.
func (a *apart) fetch(k, callers int) error {
	for seq := 1; ; seq++ {
		prefix := "w0123456789-" + strconv.Itoa(seq) + "-"
		tasks, err := redis.ByteSlices(a.script.Do(a.claims, ceilingList, ceilingHeld, k, prefix))
		if errors.Is(err, redis.ErrNil) {
			return nil
		}
		if err != nil {
			return err
		}
		per := max(1, (len(tasks)+callers-1)/callers)
		for i := 0; i < len(tasks); i += per {
			items := make([]bareItem, 0, per)
			for j := i; j < min(i+per, len(tasks)); j++ {
				items = append(items, bareItem{prefix + strconv.Itoa(j+1), tasks[j]})
			}
			a.work <- items
		}
	}
}

// call runs tasks until there are no more. After an error it still takes them, so that nobody waits for it.
func (a *apart) call() error {
	var failed error
	for items := range a.work {
		fields := make([]string, len(items))
		for i, item := range items {
			failed = errors.Join(failed, a.handler.run(item.task))
			fields[i] = item.field
		}
		a.acks <- fields
	}
	return failed
}

// acknowledge sends everything done since its last command in one HDEL.
func (a *apart) acknowledge() error {
	var failed error
	for fields := range a.acks {
		args := appendStrings([]any{ceilingHeld}, fields)
		for more := true; more && len(args) < 1000; {
			select {
			case fields, ok := <-a.acks:
				args = appendStrings(args, fields)
				more = ok
			default:
				more = false
			}
		}
		if failed == nil {
			_, failed = a.ends.Do("HDEL", args...)
		}
	}
	return failed
}
