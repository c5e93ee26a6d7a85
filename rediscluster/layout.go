package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"
)

const (
	// askTimeout bounds asking one node, so that a node behind a dead network does not delay asking the others.
	askTimeout = 2 * time.Second
	// refreshPause is the least time between two questions.
	refreshPause = 200 * time.Millisecond
)

// layout knows which node serves which slot. It is safe for concurrent use.
type layout struct {
	startup []string // nodes of the URL
	opts    []redis.DialOption
	retain  func(serving map[string]bool)

	ctx  context.Context //nolint:containedctx // the life of the goroutine that asks
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex               // protects the following
	slots   [redisc.HashSlots]string // address of the master, "" unknown
	known   map[string]bool          // all masters
	doubted map[string]bool          // nodes that have since been slow to answer a call
	asking  *asking                  // not nil while a goroutine asks
	updated time.Time                // when the last answer came
	closed  bool
}

// asking is one round of questions. err may be read after done is closed.
type asking struct {
	done chan struct{}
	err  error
}

func newLayout(startup []string, opts []redis.DialOption, retain func(map[string]bool)) *layout {
	l := &layout{startup: startup, opts: opts, retain: retain, known: map[string]bool{}, doubted: map[string]bool{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// node returns the address of the node that serves a slot; it asks the cluster if that is not known.
func (l *layout) node(ctx context.Context, slot int) (string, error) {
	l.mu.Lock()
	addr := l.slots[slot]
	l.mu.Unlock()
	if addr != "" {
		return addr, nil
	}
	if err := l.refresh(ctx); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if addr = l.slots[slot]; addr == "" {
		return "", fmt.Errorf("no node of the cluster serves slot %d: assign it with CLUSTER ADDSLOTS", slot)
	}
	return addr, nil
}

// moved notes where a slot has gone, according to the node that had it, and refreshes the layout, of which more may
// have changed.
func (l *layout) moved(slot int, addr string) {
	l.mu.Lock()
	news := l.slots[slot] != addr
	l.slots[slot] = addr
	l.mu.Unlock()
	if news {
		l.refreshSoon()
	}
}

// doubt notes that a node is slow to answer, so that it is asked for the layout last.
func (l *layout) doubt(addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubted[addr] = true
}

// serves reports whether a node serves any slot, as far as is known.
func (l *layout) serves(addr string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[addr]
}

// refreshSoon asks the cluster in the background, unless that has just been done.
func (l *layout) refreshSoon() { _, _ = l.startAsking() }

// refresh asks the cluster for its layout, unless that has just been done, and waits for the answer.
func (l *layout) refresh(ctx context.Context) error {
	a, err := l.startAsking()
	if a == nil {
		return err
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startAsking returns the round of questions that is under way; it starts one if need be. It returns nil if none is
// needed or possible.
func (l *layout) startAsking() (*asking, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errClosed
	case l.asking != nil:
		return l.asking, nil
	case !l.updated.IsZero() && time.Since(l.updated) < refreshPause:
		return nil, nil
	}
	a := &asking{done: make(chan struct{})}
	l.asking = a
	nodes := l.candidates()
	l.wg.Go(func() {
		defer close(a.done)
		a.err = l.askAll(nodes)
	})
	return a, nil
}

// candidates returns the known nodes in random order and then those of the URL, in case all known addresses are out of
// date. Doubted nodes come last.
func (l *layout) candidates() []string {
	var nodes []string
	for addr := range l.known {
		nodes = append(nodes, addr)
	}
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, i := range rand.Perm(len(l.startup)) {
		if !l.known[l.startup[i]] {
			nodes = append(nodes, l.startup[i])
		}
	}
	slices.SortStableFunc(nodes, func(a, b string) int {
		switch {
		case l.doubted[a] == l.doubted[b]:
			return 0
		case l.doubted[a]:
			return 1
		}
		return -1
	})
	return nodes
}

// askAll asks one node after the other until one answers, and applies its answer.
func (l *layout) askAll(nodes []string) error {
	var errs []error
	for _, addr := range nodes {
		slots, err := askOne(l.ctx, addr, l.opts)
		if err == nil {
			l.replace(slots)
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
		if l.ctx.Err() != nil {
			errs = []error{errClosed}
			break
		}
	}
	l.mu.Lock()
	l.asking = nil
	l.mu.Unlock()
	return fmt.Errorf("no node tells the layout of the cluster: %w", errors.Join(errs...))
}

// replace applies a new layout. A slot that no node serves keeps its address, so that errors come from that node.
func (l *layout) replace(slots *[redisc.HashSlots]string) {
	l.mu.Lock()
	known := map[string]bool{}
	for slot, addr := range slots {
		if addr != "" {
			l.slots[slot] = addr
			known[addr] = true
		}
	}
	l.known = known
	clear(l.doubted)
	l.updated = time.Now()
	l.asking = nil
	l.mu.Unlock()
	l.retain(known)
}

// askOne asks a node which nodes serve which slots.
func askOne(ctx context.Context, addr string, opts []redis.DialOption) (*[redisc.HashSlots]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	dialer := &net.Dialer{}
	var slots [redisc.HashSlots]string
	served := 0
	// A redisc.Cluster with one startup node asks that node.
	one := &redisc.Cluster{
		StartupNodes: []string{addr},
		DialOptions: slices.Concat(opts, []redis.DialOption{
			redis.DialReadTimeout(askTimeout), redis.DialTLSHandshakeTimeout(askTimeout),
			redis.DialContextFunc(func(_ context.Context, network, addr string) (net.Conn, error) {
				c, err := dialer.DialContext(ctx, network, addr)
				if err == nil {
					context.AfterFunc(ctx, func() { c.Close() })
				}
				return c, err
			}),
		}),
		LayoutRefresh: func(_, nodes [redisc.HashSlots][]string) {
			for slot := range nodes {
				if len(nodes[slot]) > 0 {
					slots[slot] = complete(nodes[slot][0], addr)
					served++
				}
			}
		},
	}
	defer one.Close()
	if err := one.Refresh(); err != nil {
		text := strings.TrimPrefix(err.Error(), "redisc: all nodes failed\n")
		if strings.Contains(text, "cluster support disabled") {
			text += ": it is a single server: use delayed.Dial"
		}
		return nil, errors.New(text)
	}
	if served == 0 {
		return nil, errors.New("it knows no node that serves a slot: it is not, or not yet, part of a cluster")
	}
	return &slots, nil
}

// complete gives an address its standard form. A node that does not know its own name sends an empty host or "?", which
// means the host that was asked; redisc omits the brackets of IPv6.
func complete(addr, asked string) string {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return addr
	}
	host, port := strings.Trim(addr[:i], "[]"), addr[i+1:]
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, port)
}

// close cancels asking and waits for its end.
func (l *layout) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.wg.Wait()
}
