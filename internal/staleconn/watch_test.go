package staleconn

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
)

// fakeConn answers INFO, ROLE and PING, and records what it was asked.
type fakeConn struct {
	redis.Conn
	role, data string // "": the server refuses to say
	err        error  // of every call
	asked      []string
	limit      time.Duration // that the last call was given
	closed     bool
	answer     error // to INCR
}

func (c *fakeConn) DoContext(ctx context.Context, cmd string, _ ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		c.closed = true
		return nil, err
	}
	c.asked = append(c.asked, cmd)
	until, _ := ctx.Deadline()
	c.limit = time.Until(until)
	switch {
	case c.err != nil:
		return nil, c.err
	case cmd == "INCR":
		return nil, c.answer
	case cmd == "PING":
		return "PONG", nil
	case c.role == "":
		return nil, redis.Error("NOPERM this user has no permissions")
	case cmd == "INFO":
		return []byte("# Replication\r\nrole:" + c.role + "\r\nmaster_replid:" + c.data + "\r\n"), nil
	}
	return nil, redis.Error("ERR unknown command")
}

func (c *fakeConn) ReceiveContext(context.Context) (any, error) { return nil, errors.New("not used") }
func (c *fakeConn) Err() error                                  { return nil }
func (c *fakeConn) Close() error                                { return nil }

// dialled returns a connection as Dial does.
func dialled(t *testing.T, w *Watch, below *fakeConn) *Conn {
	t.Helper()
	c := &Conn{Conn: below, watch: w}
	if err := w.admit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *fakeConn) expect(t *testing.T, what string, cmds ...string) {
	t.Helper()
	if len(c.asked) != len(cmds) {
		t.Errorf("%s: found commands %q, expected %q", what, c.asked, cmds)
	}
	for i := range min(len(cmds), len(c.asked)) {
		if c.asked[i] != cmds[i] {
			t.Errorf("%s: found commands %q, expected %q", what, c.asked, cmds)
		}
	}
	c.asked = nil
}

// TestIdleConnections: one that has idled for long must answer a PING, and what idles beside one that does not is given
// up untested.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false)
		test := w.Test(10*time.Second, 5*time.Second)
		below := &fakeConn{}
		a, b := dialled(t, w, below), dialled(t, w, &fakeConn{})
		now := time.Now()
		if err := test(t.Context(), a, now); err != nil {
			t.Error(err)
		}
		below.expect(t, "used just now")
		if err := test(t.Context(), a, now.Add(-11*time.Second)); err != nil {
			t.Error(err)
		}
		below.expect(t, "used 11 s ago", "PING")
		if below.limit != 5*time.Second {
			t.Errorf("the PING had %v, expected 5 s", below.limit)
		}
		below.err = errors.New("no answer")
		if err := test(t.Context(), a, now.Add(-11*time.Second)); !errors.Is(err, below.err) {
			t.Errorf("one that does not answer: %v", err)
		}
		if err := test(t.Context(), b, now); !errors.Is(err, ErrGivenUp) {
			t.Errorf("another of before: found %v, expected that it is given up", err)
		}
		if err := test(t.Context(), dialled(t, w, &fakeConn{}), now); err != nil {
			t.Errorf("a new one: %v", err)
		}
	})
}

// TestAnswersOfADemotedMaster: after one of these answers, all connections of before are given up.
func TestAnswersOfADemotedMaster(t *testing.T) {
	for answer, gone := range map[string]bool{
		"READONLY You can't write against a read only replica.":                                                true,
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -READONLY You can't write":   true,
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)":         true,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                     true,
		"LOADING Redis is loading the dataset in memory":                                                       true,
		"OOM command not allowed when used memory > 'maxmemory'.":                                              false,
		"NOREPLICAS Not enough good replicas to write.":                                                        false,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":     false,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                    false,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":               false,
		"ERR value is not an integer: READONLY":                                                                false,
		"NOSCRIPT No matching script. Please use EVAL.":                                                        false,
		"ERR unknown command 'X', with args beginning with: 'a task that speaks of -READONLY' 'LOADING it is'": false,
	} {
		w := New(true)
		below := &fakeConn{role: "master", data: "1", answer: redis.Error(answer)}
		c, idle := dialled(t, w, below), dialled(t, w, &fakeConn{role: "master", data: "1"})
		for _, age := range []time.Duration{0, infancy} {
			if c.Err() != nil {
				t.Errorf("%s: a new connection is given up at once", answer)
			}
			c.born = time.Now().Add(-age)
			if _, err := c.DoContext(t.Context(), "INCR", "k"); !errors.Is(err, below.answer) {
				t.Errorf("%s: found error %v", answer, err)
			}
		}
		if found := c.Err() != nil; found != gone {
			t.Errorf("%s: its connection is given up: %v, expected %v", answer, found, gone)
		}
		if found := errors.Is(idle.Err(), ErrGivenUp); found != gone {
			t.Errorf("%s: others are given up: %v, expected %v", answer, found, gone)
		}
		if c := dialled(t, w, &fakeConn{role: "master", data: "2"}); c.Err() != nil {
			t.Errorf("%s: a new connection is given up: %v", answer, c.Err())
		}
	}
}

// TestAnotherServerBehindTheAddress: a new connection that leads elsewhere shows that the old ones are stale.
func TestAnotherServerBehindTheAddress(t *testing.T) {
	for what, test := range map[string]struct {
		first, second fakeConn
		gone          bool
	}{
		"the same":                  {fakeConn{role: "master", data: "1"}, fakeConn{role: "master", data: "1"}, false},
		"another master":            {fakeConn{role: "master", data: "1"}, fakeConn{role: "master", data: "2"}, true},
		"a replica of the same":     {fakeConn{role: "master", data: "1"}, fakeConn{role: "slave", data: "1"}, true},
		"two replicas of one":       {fakeConn{role: "slave", data: "1"}, fakeConn{role: "slave", data: "1"}, false},
		"one that says only a role": {fakeConn{role: "master", data: "1"}, fakeConn{role: "master"}, false},
		"one that says nothing":     {fakeConn{role: "master", data: "1"}, fakeConn{}, false},
	} {
		w := New(true)
		old := dialled(t, w, &test.first)
		fresh := dialled(t, w, &test.second)
		if gone := old.Err() != nil; gone != test.gone || fresh.Err() != nil {
			t.Errorf("%s: the old one is given up: %v, expected %v; the new one: %v", what, gone, test.gone,
				fresh.Err())
		}
	}
}

// TestPooledConnectionsAsk: who only reads would never hear that a master has become a replica. A worker's BLPOP would.
func TestPooledConnectionsAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(true)
		test := w.Test(time.Hour, 5*time.Second)
		below := &fakeConn{role: "master", data: "1"}
		c := dialled(t, w, below)
		below.expect(t, "dialling", "INFO")
		borrow := func() error { return test(t.Context(), c, time.Now()) }
		if err := borrow(); err != nil {
			t.Error(err)
		}
		below.expect(t, "at once")
		<-time.After(askEvery)
		if err := borrow(); err != nil {
			t.Error(err)
		}
		below.expect(t, "a second later", "INFO")
		<-time.After(askEvery)
		w.blocked.Add(1)
		if err := borrow(); err != nil {
			t.Error(err)
		}
		below.expect(t, "beside a BLPOP")
		w.blocked.Add(-1)
		below.role = "slave"
		if err := borrow(); !errors.Is(err, ErrGivenUp) || !errors.Is(c.Err(), ErrGivenUp) {
			t.Errorf("a demoted master: found %v and %v, expected that it is given up", err, c.Err())
		}
	})
}

// TestServersThatDoNotSayWhoTheyAre are asked once.
func TestServersThatDoNotSayWhoTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(true)
		below := &fakeConn{}
		c := dialled(t, w, below)
		below.expect(t, "dialling", "INFO", "ROLE")
		<-time.After(time.Minute)
		if err := w.Test(time.Hour, time.Second)(t.Context(), c, time.Now()); err != nil {
			t.Error(err)
		}
		dialled(t, w, below)
		below.expect(t, "later")
		if err := w.Test(time.Hour, time.Second)(t.Context(), c, time.Now().Add(-2*time.Hour)); err != nil {
			t.Error(err)
		}
		below.expect(t, "after it has idled for long", "PING")
	})
}

// TestLentConnections: a pool of the program must not get back what is given up, and hands out other connections of
// before for a while.
func TestLentConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(true)
		lend := func(below *fakeConn) (*Conn, error) { return w.Lend(t.Context(), below, 5*time.Second) }
		<-time.After(time.Hour)
		first := &fakeConn{role: "master", data: "1", answer: redis.Error("READONLY You can't write")}
		c, err := lend(first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.DoContext(t.Context(), "INCR"); err == nil {
			t.Error("expected an error")
		}
		c.Close()
		if !first.closed {
			t.Error("the connection to a replica goes back to the pool")
		}
		second := &fakeConn{role: "slave", data: "2"}
		if _, err := lend(second); !errors.Is(err, ErrGivenUp) || !second.closed {
			t.Errorf("another connection to it: found %v, closed: %v", err, second.closed)
		}
		third := &fakeConn{role: "master", data: "2"}
		if c, err = lend(third); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if third.closed {
			t.Error("a good connection does not go back to the pool")
		}
	})
}

// TestClosedByServer looks at connections without waiting.
func TestClosedByServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := listener.Accept()
		accepted <- c
	}()
	wire, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	server := <-accepted
	if !canPeek(wire) {
		return // this system cannot
	}
	past := time.Unix(1, 0)
	if err := errors.Join(wire.SetReadDeadline(past), closedByServer(wire)); err != nil {
		t.Errorf("an open one whose last call had a time-out: %v", err)
	}
	server.Close()
	for end := time.Now().Add(time.Minute); closedByServer(wire) == nil; {
		if time.Now().After(end) {
			t.Fatal("it is not seen that the server has closed the connection")
		}
	}
}
