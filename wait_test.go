package delayed_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
)

// awaySource has no connections until it is set to be back.
type awaySource struct {
	delayed.Source
	asked atomic.Int64
	back  atomic.Bool
}

func (s *awaySource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	s.asked.Add(1)
	if !s.back.Load() {
		return nil, errors.New("connection refused")
	}
	return s.Source.Conn(ctx, key)
}

// TestWaitWhileRedisIsAway: Redis is unreachable from the first look on, and Wait waits until it is back, or ctx ends.
func TestWaitWhileRedisIsAway(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() int { return 7 }, delayed.KeepResult(time.Hour))
	ref := b.delay(f)
	src := &awaySource{Source: b.src}
	away := delayed.FromSource(src)
	defer away.Close()
	there := delayed.NewQueue(b.Name, away).Ref(ref.ID())

	type answer struct {
		n   int
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		n, err := delayed.Await[int](b.within(), there)
		answered <- answer{n, err}
	}()
	// The first look, and then the first attempt to subscribe.
	b.Until("Redis has been asked for", func() bool { return src.asked.Load() >= 2 })
	select {
	case a := <-answered:
		t.Fatalf("Await gave up: %d, %v", a.n, a.err)
	default:
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := there.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Wait until a deadline: found %v", err)
	}
	b.work(b.config(), f)
	src.back.Store(true)
	if a := await(b, "the result", answered); a.n != 7 || a.err != nil {
		t.Errorf("found %d, %v", a.n, a.err)
	}
}

// TestWaitThatRedisRefuses: Wait returns the error, because waiting does not help.
func TestWaitThatRedisRefuses(t *testing.T) {
	b := newBench(t)
	b.Do("SET", b.Name+"_completed", "x")
	err := b.q.Ref("x").Wait(t.Context())
	var answer redis.Error
	if !errors.As(err, &answer) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("found %v", err)
	}
	for text, want := range map[string]bool{
		"NOPERM no permissions": true, "WRONGTYPE Operation": true, "WRONGPASS invalid": true,
		"LOADING Redis is loading": false,
		"BUSY Redis is busy":       false, "READONLY You can't write": false,
		"ERR max number of clients reached": false,
		"UNBLOCKED force unblock":           false,
		// As Redis 6.2 words the errors of scripts.
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -READONLY You can't write": false,
		"ERR Error running script (call to f_0): @user_script:1: WRONGTYPE Operation":                        true,
	} {
		if redisstore.Refused(redis.Error(text)) != want {
			t.Errorf("%s: expected that Redis refuses: %v", text, want)
		}
	}
}

// TestReadsAreNeverUnknown: a command that only reads has changed nothing, whether or not it was answered.
func TestReadsAreNeverUnknown(t *testing.T) {
	b := newBench(t)
	proxy := faultnet.NewProxy(t, b.Server.Addr())
	rdb, err := delayed.Dial(proxy.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	ref := delayed.NewQueue(b.Name, rdb).Ref("x")
	ask := func(ctx context.Context) error { _, err := ref.State(ctx); return err }
	for name, call := range map[string]func(context.Context) error{"State": ask, "Cancel": ref.Cancel} {
		if err := ask(t.Context()); err != nil {
			t.Fatal(err) // it is connected, and Redis knows the script
		}
		proxy.SetPlan(faultnet.Once(faultnet.DropReply,
			func(request []byte) bool { return bytes.Contains(request, []byte("EVALSHA")) }), 0)
		err := call(t.Context())
		if err == nil || errors.Is(err, delayed.ErrUnknown) ||
			!strings.Contains(err.Error(), "look: no answer of Redis") {
			t.Errorf("%s: found %v", name, err)
		}
	}
	for _, s := range redisstore.Scripts {
		if slices.Contains([]string{
			"agenda", "check", "fields", "lengths", "lives", "look", "overview", "page", "peek", "roster", "shelf",
			"workers",
		}, s.Name) != s.Reads {
			t.Errorf("%s only reads: %v", s.Name, s.Reads)
		}
		if err := s.Explain(errors.New("EOF")); errors.Is(err, delayed.ErrUnknown) == s.Reads {
			t.Errorf("%s, which only reads: %v: %v", s.Name, s.Reads, err)
		}
	}
}
