package redissentinel

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/fakeredis"
)

// TestAnnouncedMaster has an old master that stays a master and does not end any connection by itself. The Sentinel
// says so when it is listened to, or sends a message later.
func TestAnnouncedMaster(t *testing.T) {
	for _, byMessage := range []bool{true, false} {
		block, speak := make(chan struct{}), make(chan struct{})
		a := startFake(t, func(args []string) string {
			switch args[0] {
			case "ROLE":
				return roleReply("master")
			case "BLPOP":
				<-block
			}
			return "+old\r\n"
		})
		b := startMaster(t, "+new\r\n")
		var asked atomic.Int32
		s := startFake(t, func(args []string) string {
			switch {
			case args[0] == "SUBSCRIBE":
				<-speak
				reply := fakeredis.Array(fakeredis.Bulk("subscribe"), fakeredis.Bulk(args[1]), ":1\r\n")
				if byMessage {
					reply += fakeredis.Array(fakeredis.Bulk("message"), fakeredis.Bulk(args[1]),
						fakeredis.Bulk("m 127.0.0.1 1 127.0.0.1 2"))
				}
				return reply
			case args[1] == "MASTER" && asked.Add(1) == 1 && byMessage:
				return masterReply(a.Port(), "1")
			case args[1] == "MASTER":
				return masterReply(b.Port(), "2")
			}
			return fakeredis.Array(fakeredis.Bulk("127.0.0.1"), fakeredis.Bulk(a.Port())) // behind the times
		})
		// Before the servers are closed, which wait for their answers.
		letGo, say := sync.OnceFunc(func() { close(block) }), sync.OnceFunc(func() { close(speak) })
		t.Cleanup(letGo)
		t.Cleanup(say)
		src := open(t, "redis://"+s.Addr()+"?master=m")
		held, waiting := connTo(t, src), connTo(t, src)
		if reply, err := held.Do("INCR", "k"); err != nil || reply != "old" {
			t.Fatalf("INCR: %v, %v", reply, err)
		}
		blocked := make(chan error, 1)
		go func() {
			_, err := redis.DoWithTimeout(waiting, 0, "BLPOP", "k", 0)
			blocked <- err
		}()
		eventually(t, "BLPOP arrives", func() bool { return strings.Contains(a.Names(), "BLPOP") })
		say()
		if err := receive(t, "the end of BLPOP on the old master", blocked); err == nil {
			t.Error("BLPOP on the old master returned without an error")
		}
		if _, err := held.Do("INCR", "k"); err == nil || held.Err() == nil {
			t.Error("a connection to the old master is still of use")
		}
		for range 2 {
			c := connTo(t, src)
			defer c.Close()
			if reply, err := c.Do("INCR", "k"); err != nil || reply != "new" {
				t.Errorf("INCR on a new connection: %v, %v", reply, err)
			}
		}
		letGo()
	}
}

// TestEverySentinelIsHeard has a first Sentinel that ends each subscription, and a second one that announces a new
// master.
func TestEverySentinelIsHeard(t *testing.T) {
	t.Parallel()
	old, successor := startMaster(t, "+old\r\n"), startMaster(t, "+new\r\n")
	sentinel := func(subscribed, port, epoch string) *fakeredis.Server {
		return startFake(t, func(args []string) string {
			switch {
			case args[0] == "SUBSCRIBE":
				return subscribed
			case args[1] == "MASTER":
				return masterReply(port, epoch)
			}
			return fakeredis.Array(fakeredis.Bulk("127.0.0.1"), fakeredis.Bulk(old.Port()))
		})
	}
	first := sentinel("", old.Port(), "1")
	second := sentinel(fakeredis.Array(fakeredis.Bulk("subscribe"), fakeredis.Bulk("+switch-master"), ":1\r\n"),
		successor.Port(), "2")
	src := open(t, "redis://"+first.Addr()+","+second.Addr()+"?master=m")
	held := connTo(t, src)
	if reply, err := held.Do("INCR", "k"); err != nil || reply != "old" {
		t.Fatalf("INCR: %v, %v", reply, err)
	}
	eventually(t, "the connection to the old master ends", func() bool {
		_, err := held.Do("INCR", "k")
		return err != nil
	})
	if reply, err := connTo(t, src).Do("INCR", "k"); err != nil || reply != "new" {
		t.Errorf("INCR on a new connection: %v, %v", reply, err)
	}
}

// TestWhatIsHeard has news that must be believed and others that must not.
func TestWhatIsHeard(t *testing.T) {
	a, b := startMaster(t, "+a\r\n"), startMaster(t, "+b\r\n")
	replica := startFake(t, func([]string) string { return roleReply("slave") })
	s := startSentinel(t, a.Port)
	src := openDeaf(t, "redis://"+s.Addr()+"?master=m")
	src.heard(b.Addr(), 1)
	if b.Names() != "" {
		t.Error("connected to a server before anybody asked for a connection")
	}
	c := connTo(t, src)
	for _, news := range []struct {
		addr  string
		epoch int64
	}{
		{a.Addr(), 5},
		{b.Addr(), 5},
		{b.Addr(), 4},
		{replica.Addr(), 6},
		{"127.0.0.1:1", 7},
		{a.Addr(), 3},
		{b.Addr(), 5},
	} {
		src.heard(news.addr, news.epoch)
		if reply, err := c.Do("INCR", "k"); err != nil || reply != "a" {
			t.Errorf("after %v: %v, %v", news, reply, err)
		}
	}
	if b.Names() != "" {
		t.Errorf("the server of an old configuration was asked: %s", b.Names())
	}
	src.heard(b.Addr(), 6)
	if _, err := c.Do("INCR", "k"); err == nil {
		t.Error("a connection to the old master is still of use")
	}
	if reply, err := connTo(t, src).Do("INCR", "k"); err != nil || reply != "b" {
		t.Errorf("after the news of a newer configuration: %v, %v", reply, err)
	}
}

// TestMasterIsTriedBeforeSentinels expects that a known master is good enough, and that the Sentinels' word counts when
// it is not.
func TestMasterIsTriedBeforeSentinels(t *testing.T) {
	a, b := startMaster(t, "+a\r\n"), startMaster(t, "+b\r\n")
	s := startSentinel(t, a.Port)
	behind := startSentinel(t, b.Port)
	src := openDeaf(t, "redis://"+s.Addr()+"?master=m")
	connTo(t, src)
	src.sentinels.addrs = []string{behind.Addr()}
	if reply, err := connTo(t, src).Do("INCR", "k"); err != nil || reply != "a" {
		t.Errorf("while the master is there: %v, %v", reply, err)
	}
	a.Close()
	if reply, err := connTo(t, src).Do("INCR", "k"); err != nil || reply != "b" {
		t.Errorf("when the master is gone: %v, %v", reply, err)
	}
	b.Close()
	_, err := src.Conn(t.Context(), "k")
	if err == nil || !strings.Contains(err.Error(), b.Addr()) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("when the next one is gone as well: %v", err)
	}
}

// TestLateConnection has a connection to the old master become ready when the new one is known already.
func TestLateConnection(t *testing.T) {
	a, b := startMaster(t, "+old\r\n"), startMaster(t, "+new\r\n")
	src := openDeaf(t, "redis://127.0.0.1:1?master=m")
	ctx := t.Context()
	c, err := src.dial(ctx, b.Addr(), "", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if late, err := src.dial(ctx, a.Addr(), "", 0); !errors.Is(err, errSuperseded) {
		t.Errorf("expected %v, found %v, %v", errSuperseded, late, err)
	}
	if reply, err := c.Do("INCR", "k"); err != nil || reply != "new" {
		t.Errorf("INCR: %v, %v", reply, err)
	}
	again, err := src.dial(ctx, b.Addr(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if len(src.conns) != 1 || src.epoch != 2 {
		t.Errorf("%d connections are known, as of epoch %d; expected one, as of epoch 2", len(src.conns), src.epoch)
	}
}

// TestMasterChangesWhileConnecting lets the new master become known between connecting to the old one and its answer.
func TestMasterChangesWhileConnecting(t *testing.T) {
	var src *source
	var change atomic.Bool
	b := startMaster(t, "+new\r\n")
	a := startFake(t, func(args []string) string {
		if args[0] != "ROLE" {
			return "+old\r\n"
		}
		if change.Load() {
			src.heard(b.Addr(), 9)
		}
		return roleReply("master")
	})
	src = openDeaf(t, "redis://"+startSentinel(t, a.Port).Addr()+"?master=m")
	connTo(t, src)
	change.Store(true)
	if reply, err := connTo(t, src).Do("INCR", "k"); err != nil || reply != "new" {
		t.Errorf("INCR: %v, %v", reply, err)
	}
}
