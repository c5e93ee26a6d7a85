package delayed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// signalBench is a server of its own, because its Pub/Sub connections are counted and cut.
func signalBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOn(t, redistest.Start(t))
}

// listeners returns how many connections have subscribed to a channel.
func (b *bench) listeners(channel string) int {
	b.T.Helper()
	reply, err := redis.Values(b.Conn.Do("PUBSUB", "NUMSUB", channel))
	if err != nil || len(reply) != 2 {
		b.T.Fatalf("PUBSUB: %v, %v", reply, err)
	}
	n, _ := redis.Int(reply[1], nil)
	return n
}

// subscribers returns the number of connections that have subscribed to anything.
func (b *bench) subscribers() int {
	b.T.Helper()
	text, err := redis.String(b.Conn.Do("CLIENT", "LIST", "TYPE", "pubsub"))
	if err != nil {
		b.T.Fatal(err)
	}
	return strings.Count(text, "\n")
}

func expectSignal(b *bench, c <-chan string, want string) {
	b.T.Helper()
	if got := await(b, fmt.Sprintf("signal %q", want), c); got != want {
		b.T.Fatalf("signal %q, expected %q", got, want)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	b := signalBench(t)
	s := delayed.Signals(b.rdb)
	const many = 100
	var all []<-chan string
	var ends []func()
	for i := range many {
		c, end := s.Subscribe(fmt.Sprintf("c%d", i%50))
		all, ends = append(all, c), append(ends, end)
	}
	for _, c := range all {
		expectSignal(b, c, "")
	}
	if n := b.subscribers(); n != 1 {
		t.Errorf("%d connections for %d subscribers, expected one", n, many)
	}
	b.Do("PUBLISH", "c7", "seven")
	expectSignal(b, all[7], "seven")
	expectSignal(b, all[57], "seven")
	if len(all[8]) > 0 {
		t.Error("a message came to another channel")
	}
	// A subscriber that comes later is told at once that its subscription holds.
	late, endLate := s.Subscribe("c7")
	if len(late) != 1 {
		t.Error("a confirmed subscription is not known as such")
	}
	expectSignal(b, late, "")
	endLate()
	endLate()
	ends[7]()
	b.Do("PUBLISH", "c7", "again")
	expectSignal(b, all[57], "again")
	if len(all[7])+len(late) > 0 {
		t.Error("a message came after unsubscribe")
	}
	ends[57]()
	b.Until("Redis knows that nobody listens", func() bool { return b.listeners("c7") == 0 })
	// Given up and wanted again in one go.
	_, end := s.Subscribe("c8")
	end()
	ends[8]()
	ends[58]()
	again, end := s.Subscribe("c8")
	defer end()
	expectSignal(b, again, "")
	b.Do("PUBLISH", "c8", "eight")
	for got := ""; got == ""; {
		got = await(b, "the message", again)
		if got != "" && got != "eight" {
			t.Errorf("found %q", got)
		}
	}
	// A handle with a prefix shares the connection.
	if delayed.Signals(b.rdb.WithPrefix("p:")) != s {
		t.Error("WithPrefix makes a connection of its own")
	}
}

func TestSignalsAfterABreak(t *testing.T) {
	t.Parallel()
	b := signalBench(t)
	c, end := delayed.Signals(b.rdb).Subscribe("c")
	defer end()
	expectSignal(b, c, "")
	for range 3 {
		b.Do("CLIENT", "KILL", "TYPE", "pubsub")
		expectSignal(b, c, "")
		b.Do("PUBLISH", "c", "m")
		expectSignal(b, c, "m")
	}
	b.Server.Stop(t)
	b.Server.Restart(t)
	b.Conn = b.Server.Dial(t)
	expectSignal(b, c, "")
	b.Do("PUBLISH", "c", "m")
	expectSignal(b, c, "m")
}

// TestSignalsOverASilentNetwork cuts a connection in a way that only silence shows.
func TestSignalsOverASilentNetwork(t *testing.T) {
	t.Parallel()
	b := signalBench(t)
	proxy := faultnet.NewProxy(t, b.Server.Addr())
	pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialURLContext(ctx, proxy.URL(), redis.DialReadTimeout(redisstore.ShortestWait))
	}}
	rdb := delayed.FromPool(pool)
	defer rdb.Close()
	c, end := delayed.Signals(rdb).Subscribe("c")
	defer end()
	expectSignal(b, c, "")
	// The time-out of the pool's connections is shorter than the time between two signs of life, which adapts.
	expectSignal(b, c, "")
	b.Do("PUBLISH", "c", "m")
	expectSignal(b, c, "m")
}

func TestSignalsClosed(t *testing.T) {
	t.Parallel()
	b := signalBench(t)
	s := delayed.Signals(b.rdb)
	c, end := s.Subscribe("c")
	expectSignal(b, c, "")
	b.rdb.Close()
	expectSignal(b, c, "") // look again: the handle is closed
	b.Until("the connection is closed", func() bool { return b.subscribers() == 0 })
	end()
	late, end := s.Subscribe("c")
	expectSignal(b, late, "")
	end()
	// Before Redis was ever reached.
	rdb, err := delayed.Dial("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	c, end = delayed.Signals(rdb).Subscribe("c")
	defer end()
	rdb.Close()
	expectSignal(b, c, "")
}

func TestSignalsOfASlowSubscriber(t *testing.T) {
	t.Parallel()
	ch := &redisstore.Channel{Listeners: []chan string{make(chan string, redisstore.SignalBuffer)}}
	for range redisstore.SignalBuffer {
		ch.Send("m")
	}
	if n := len(ch.Listeners[0]); n != redisstore.SignalBuffer {
		t.Errorf("%d messages wait, expected %d", n, redisstore.SignalBuffer)
	}
	ch.Send("lost")
	ch.Send("next")
	if a, b := <-ch.Listeners[0], <-ch.Listeners[0]; a != "" || b != "next" || len(ch.Listeners[0]) > 0 {
		t.Errorf("found %q and %q, expected the demand to look again and what came after", a, b)
	}
}

// TestSignalsEnd sees the connection go when nobody listens any more, and come again.
func TestSignalsEnd(t *testing.T) {
	t.Parallel()
	b := signalBench(t)
	s := delayed.Signals(b.rdb)
	s.Linger = 0
	for range 3 {
		c, end := s.Subscribe("c")
		expectSignal(b, c, "")
		end()
		b.Until("the connection is closed", func() bool { return b.subscribers() == 0 })
	}
}
