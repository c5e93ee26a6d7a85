package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

// signalBench is a server of its own, because the tests count and close its Pub/Sub connections.
type signalBench struct {
	*redistest.Bench
	signals *Signals
}

func newSignalBench(t *testing.T) *signalBench {
	t.Helper()
	server := redistest.Start(t)
	b := &signalBench{redistest.NewBench(t, server), NewSignals(dialled(t, server.URL()))}
	t.Cleanup(b.signals.Close)
	return b
}

// listeners returns how many connections have subscribed to a channel.
func (b *signalBench) listeners(channel string) int {
	b.T.Helper()
	reply, err := redis.Values(b.Conn.Do("PUBSUB", "NUMSUB", channel))
	if err != nil || len(reply) != 2 {
		b.T.Fatalf("PUBSUB: %v, %v", reply, err)
	}
	n, _ := redis.Int(reply[1], nil)
	return n
}

// subscribers returns the number of connections that have subscribed to anything.
func (b *signalBench) subscribers() int {
	b.T.Helper()
	text, err := redis.String(b.Conn.Do("CLIENT", "LIST", "TYPE", "pubsub"))
	if err != nil {
		b.T.Fatal(err)
	}
	return strings.Count(text, "\n")
}

// expect waits for a signal.
func (b *signalBench) expect(c <-chan string, want string) {
	b.T.Helper()
	if got := redistest.Await(b.Bench, fmt.Sprintf("signal %q", want), c); got != want {
		b.T.Fatalf("signal %q, expected %q", got, want)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	b := newSignalBench(t)
	s := b.signals
	const many = 100
	var all []<-chan string
	var ends []func()
	for i := range many {
		c, end := s.Subscribe(fmt.Sprintf("c%d", i%50))
		all, ends = append(all, c), append(ends, end)
	}
	for _, c := range all {
		b.expect(c, "")
	}
	if n := b.subscribers(); n != 1 {
		t.Errorf("%d connections for %d subscribers, expected one", n, many)
	}
	b.Do("PUBLISH", "c7", "seven")
	b.expect(all[7], "seven")
	b.expect(all[57], "seven")
	if len(all[8]) > 0 {
		t.Error("a message came to another channel")
	}
	// A later subscriber is told at once that its subscription is active.
	late, endLate := s.Subscribe("c7")
	if len(late) != 1 {
		t.Error("a confirmed subscription is not known as such")
	}
	b.expect(late, "")
	endLate()
	endLate()
	ends[7]()
	b.Do("PUBLISH", "c7", "again")
	b.expect(all[57], "again")
	if len(all[7])+len(late) > 0 {
		t.Error("a message came after unsubscribe")
	}
	ends[57]()
	b.Until("Redis knows that nobody listens", func() bool { return b.listeners("c7") == 0 })
	// A subscription that ends and begins again at once.
	_, end := s.Subscribe("c8")
	end()
	ends[8]()
	ends[58]()
	again, end := s.Subscribe("c8")
	defer end()
	b.expect(again, "")
	b.Do("PUBLISH", "c8", "eight")
	for got := ""; got == ""; {
		got = redistest.Await(b.Bench, "the message", again)
		if got != "" && got != "eight" {
			t.Errorf("found %q", got)
		}
	}
}

func TestSignalsAfterABreak(t *testing.T) {
	t.Parallel()
	b := newSignalBench(t)
	c, end := b.signals.Subscribe("c")
	defer end()
	b.expect(c, "")
	for range 3 {
		b.Do("CLIENT", "KILL", "TYPE", "pubsub")
		b.expect(c, "")
		b.Do("PUBLISH", "c", "m")
		b.expect(c, "m")
	}
	b.Server.Stop(t)
	b.Server.Restart(t)
	b.Conn = b.Server.Dial(t)
	b.expect(c, "")
	b.Do("PUBLISH", "c", "m")
	b.expect(c, "m")
}

// TestSignalsOverASilentNetwork breaks a connection so that only silence shows it.
func TestSignalsOverASilentNetwork(t *testing.T) {
	t.Parallel()
	b := newSignalBench(t)
	proxy := faultnet.NewProxy(t, b.Server.Addr())
	pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialURLContext(ctx, proxy.URL(), redis.DialReadTimeout(ShortestWait))
	}}
	defer pool.Close()
	s := NewSignals(PoolSource{Pool: pool})
	defer s.Close()
	c, end := s.Subscribe("c")
	defer end()
	b.expect(c, "")
	// The timeout of the pool's connections is shorter than the time between two PINGs, which adapts.
	b.expect(c, "")
	b.Do("PUBLISH", "c", "m")
	b.expect(c, "m")
}

func TestSignalsClosed(t *testing.T) {
	t.Parallel()
	b := newSignalBench(t)
	s := b.signals
	c, end := s.Subscribe("c")
	b.expect(c, "")
	s.Close()
	b.expect(c, "") // look again: nobody listens any more
	b.Until("the connection is closed", func() bool { return b.subscribers() == 0 })
	end()
	late, end := s.Subscribe("c")
	b.expect(late, "")
	end()
	// Before the first connection to Redis.
	s = NewSignals(dialled(t, "redis://127.0.0.1:1"))
	c, end = s.Subscribe("c")
	defer end()
	s.Close()
	b.expect(c, "")
}

func TestSignalsOfASlowSubscriber(t *testing.T) {
	t.Parallel()
	ch := &channel{listeners: []chan string{make(chan string, signalBuffer)}}
	for range signalBuffer {
		ch.Send("m")
	}
	if n := len(ch.listeners[0]); n != signalBuffer {
		t.Errorf("%d messages wait, expected %d", n, signalBuffer)
	}
	ch.Send("lost")
	ch.Send("next")
	if a, b := <-ch.listeners[0], <-ch.listeners[0]; a != "" || b != "next" || len(ch.listeners[0]) > 0 {
		t.Errorf("found %q and %q, expected the demand to look again and what came after", a, b)
	}
}

// TestSignalsEnd: the connection is closed when nobody listens any more, and made again for the next listener.
func TestSignalsEnd(t *testing.T) {
	t.Parallel()
	b := newSignalBench(t)
	s := b.signals
	s.linger = 0
	for range 3 {
		c, end := s.Subscribe("c")
		b.expect(c, "")
		end()
		b.Until("the connection is closed", func() bool { return b.subscribers() == 0 })
	}
}

// TestParkingIsPublished parks a task: workers that know its function are told.
func TestParkingIsPublished(t *testing.T) {
	t.Parallel()
	b := newSignalBench(t)
	store := NewStore(dialled(t, b.Server.URL()), "", b.Name)
	c, end := b.signals.Subscribe(store.keys.signals())
	defer end()
	b.expect(c, "")
	b.Do("HSET", b.Name+"_processing:w", "1-1", "message")
	task := Shelved{Token: "1-1", ID: "x", Wait: time.Hour, Info: []byte{0x80}, Path: "mail.Welcome"}
	if _, _, err := store.Shelve(t.Context(), "w", []uint64{1}, ShelfParked, 0, nil,
		[]Shelved{task}); err != nil {
		t.Fatal(err)
	}
	b.expect(c, SignalParked+" mail.Welcome")
}

// TestSignalsOnCluster publishes signals on each node; a process that is connected to one node gets them.
func TestSignalsOnCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := NewSignals(DialCluster(t, cluster.URL()))
	defer s.Close()
	b := redistest.NewBench(t, redistest.Shared(t))
	expect := func(c <-chan string, want string) {
		t.Helper()
		if got := redistest.Await(b, "a signal", c); got != want {
			t.Errorf("heard %q, expected %q", got, want)
		}
	}
	c, end := s.Subscribe("{mail}_signals")
	defer end()
	expect(c, "")
	for i, node := range cluster.Nodes {
		node.Do(t, "PUBLISH", "{mail}_signals", fmt.Sprint(i))
		expect(c, fmt.Sprint(i))
		other, end := s.Subscribe(fmt.Sprint("other", i))
		expect(other, "")
		end()
	}
	for _, node := range cluster.Nodes {
		node.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	}
	expect(c, "")
	cluster.Nodes[2].Do(t, "PUBLISH", "{mail}_signals", "after")
	expect(c, "after")
}

// TestUntil makes contexts that end with others, and have no deadline of theirs.
func TestUntil(t *testing.T) {
	t.Parallel()
	s := NewSignals(PoolSource{})
	parent, end := context.WithTimeout(t.Context(), time.Hour)
	ctx, cancel := s.Until(parent)
	defer cancel()
	if at, ok := ctx.Deadline(); ok {
		t.Errorf("it has the deadline %v: connections would break off just before it", at)
	}
	end()
	<-ctx.Done()
	ctx, cancel = s.Until(t.Context())
	defer cancel()
	s.Close()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrHandleClosed) {
		t.Errorf("ended by %v, expected ErrHandleClosed", err)
	}
}
