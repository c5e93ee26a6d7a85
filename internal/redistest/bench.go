package redistest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Patience bounds every wait of a test: a minute, or what the environment variable DELAYED_TEST_PATIENCE says. Nothing
// is measured with it: it only ends tests that hang.
var Patience = patienceOf(os.Getenv("DELAYED_TEST_PATIENCE"))

func patienceOf(setting string) time.Duration {
	if setting == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(setting)
	if err != nil {
		panic(fmt.Errorf("redistest: DELAYED_TEST_PATIENCE: %w", err))
	}
	return d
}

// Bench is a queue on a real server with what tests ask of it.
type Bench struct {
	T      testing.TB
	Server *Server
	Name   string // of the queue
	Conn   redis.Conn
	Log    fmt.Stringer // shown when a wait is in vain; nil: nothing
}

// NewBench returns a queue of its own on a server.
func NewBench(t testing.TB, server *Server) *Bench {
	t.Helper()
	return &Bench{T: t, Server: server, Name: Name(t), Conn: server.Dial(t)}
}

// Check holds the queue's keys against the invariants.
func (b *Bench) Check(allow Invariants) {
	b.T.Helper()
	CheckInvariants(b.T, b.Conn, b.Name, allow)
}

// Must fails the test if there is an error.
func (b *Bench) Must(err error) {
	b.T.Helper()
	if err != nil {
		b.T.Fatal(err)
	}
}

// Until waits for a condition on something that goes on elsewhere. The longer it has waited, the less often it looks,
// because each look costs processor time that others need.
func (b *Bench) Until(what string, cond func() bool) {
	b.T.Helper()
	deadline := time.Now().Add(Patience)
	for pause := time.Millisecond; !cond(); pause = min(pause*5/4, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			b.inVain("until " + what)
		}
		<-time.After(pause)
	}
}

// inVain ends a test whose wait did not end.
func (b *Bench) inVain(what string) {
	b.T.Helper()
	b.T.Fatalf("waited in vain %s\nqueue: %s\nlog:\n%v", what, Diff(Dump(b.T, b.Conn, b.Name), nil), b.Log)
}

// Await receives from a channel, or fails the test.
func Await[T any](b *Bench, what string, c <-chan T) T {
	b.T.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		b.inVain("for " + what)
		panic("unreachable")
	}
}

// Idle waits until nothing is pending or claimed.
func (b *Bench) Idle() {
	b.T.Helper()
	b.Until("the queue is idle", func() bool {
		// In one step: between two a task could move from what was not read yet to what has been read.
		return b.Int("EVAL", `return #redis.call('KEYS', KEYS[1] .. '_processing:*') + redis.call('LLEN', KEYS[1])
			+ redis.call('LLEN', KEYS[1] .. '_suspects')`, 1, b.Name) == 0
	})
}

// Do sends a command.
func (b *Bench) Do(cmd string, args ...any) any {
	b.T.Helper()
	reply, err := b.Conn.Do(cmd, args...)
	if err != nil {
		b.T.Fatalf("%s: %v", cmd, err)
	}
	return reply
}

// Int returns the reply of a command that answers a number.
func (b *Bench) Int(cmd string, args ...any) int {
	b.T.Helper()
	n, err := redis.Int(b.Do(cmd, args...), nil)
	if err != nil {
		b.T.Fatalf("%s: %v", cmd, err)
	}
	return n
}

// Size returns the number of elements of one of the queue's keys.
func (b *Bench) Size(suffix string) int {
	b.T.Helper()
	kind, _ := redis.String(b.Do("TYPE", b.Name+suffix), nil)
	cmd := map[string]string{"list": "LLEN", "hash": "HLEN", "zset": "ZCARD", "set": "SCARD"}[kind]
	if cmd == "" {
		return 0
	}
	return b.Int(cmd, b.Name+suffix)
}

// List returns the value of one of the queue's keys, nil if there is none.
func (b *Bench) List(suffix string) List {
	b.T.Helper()
	v, _ := Dump(b.T, b.Conn, b.Name)[suffix].(List)
	return v
}

// Hash returns the value of one of the queue's keys, nil if there is none.
func (b *Bench) Hash(suffix string) Hash {
	b.T.Helper()
	v, _ := Dump(b.T, b.Conn, b.Name)[suffix].(Hash)
	return v
}

// Time is the time of the server, in ms.
func Time(t testing.TB, conn redis.Conn) int64 {
	t.Helper()
	ms, err := TimeOf(conn)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// TimeOf is Time for a server that may refuse.
func TimeOf(conn redis.Conn) (ms int64, err error) {
	parts, err := redis.Int64s(conn.Do("TIME"))
	if err != nil || len(parts) != 2 {
		return 0, fmt.Errorf("TIME answered %v, %w", parts, err)
	}
	return parts[0]*1000 + parts[1]/1000, nil
}
