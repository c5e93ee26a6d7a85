package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestStoreAfterScriptFlush runs all cases on a server that has just lost every script.
func TestStoreAfterScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	to := serverTarget(t, server.URL())
	to.before = func(t testing.TB, _ *storeTable) {
		t.Helper()
		server.FlushScripts(t)
	}
	runTables(t, to)
}

// TestScriptFlushInTheMiddle flushes all scripts again and again while tasks are enqueued, claimed and acked: a script
// is sent a second time exactly when it was unknown.
func TestScriptFlushInTheMiddle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	name := redistest.Name(t)
	s := NewStore(dialled(t, server.URL()), "", name)
	const workers, each = 4, 100
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			id := fmt.Sprint("w", w)
			if _, err := s.Register(bg, id, time.Hour, "v"); err != nil {
				t.Error(err)
			}
			for i := range each {
				if err := s.Enqueue(bg, envelopes(2)); err != nil {
					t.Error(err)
				}
				got, err := s.Claim(bg, ClaimCall{Worker: id, Batch: uint64(i + 1), Most: 1})
				if err != nil || len(got.Messages) != 1 {
					t.Errorf("claimed %q, %v", got.Messages, err)
				}
				if stood, err := s.Ack(bg, id,
					Ended{Batches: []uint64{uint64(i + 1)}, Tokens: slices.Collect(TokensOf(uint64(i+1), 1))},
					0); err != nil || !stood[0] {
					t.Errorf("acked %v, %v", stood, err)
				}
			}
			if _, err := s.Unregister(bg, id); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	conn := server.Dial(t)
	for flushed := 0; ; flushed++ {
		select {
		case <-done:
			if n, err := s.Length(bg); err != nil || n != workers*each {
				t.Errorf("%d tasks are pending, %v, expected %d", n, err, workers*each)
			}
			redistest.CheckInvariants(t, conn, name, redistest.Invariants{})
			if flushed < 10 {
				t.Errorf("scripts were forgotten %d times, expected at least 10 times", flushed)
			}
			return
		default:
			if _, err := conn.Do("SCRIPT", "FLUSH"); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestStoreOnBrokenDisk runs all cases on a server that refuses every write, because it could not save its data. Calls
// that write nothing succeed; the others return ErrFull and have written nothing.
func TestStoreOnBrokenDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t, "--save", "3600", "1", "--dir", dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	server.Do(t, "BGSAVE")
	for deadline := time.Now().Add(redistest.Patience); ; {
		info, err := redis.String(server.Do(t, "INFO", "persistence"), nil)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("saving did not fail: %v\n%s", err, info)
		}
		if strings.Contains(info, "rdb_last_bgsave_status:err") {
			break
		}
	}
	to := serverTarget(t, server.URL())
	refused := map[string]int{}
	to.before = func(t testing.TB, table *storeTable) {
		t.Helper()
		server.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
		refused[table.script] += 0
	}
	to.after = func(t testing.TB, c *storeCase, got *callView) {
		t.Helper()
		server.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
		if errors.Is(got.err, ErrFull) {
			if errors.Is(got.err, ErrUnknown) || !strings.Contains(got.err.Error(), "MISCONF") {
				t.Errorf("expected the answer MISCONF in the error, found %v", got.err)
			}
			refused[c.script]++
			c.want, c.result, c.err = nil, nil, ErrFull
		}
	}
	server.Do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	runTables(t, to)
	for script, n := range refused {
		if Scripts[script].Reads != (n == 0) {
			t.Errorf("%s was refused %d times", script, n)
		}
	}
}

// TestStoreWithoutReply runs all cases over connections that break after the request was sent, before or after Redis
// executed it: the result is unknown, so the error is ErrUnknown.
func TestStoreWithoutReply(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for _, row := range Scripts {
		server.Do(t, "SCRIPT", "LOAD", row.Source)
	}
	for _, fault := range []faultnet.Fault{faultnet.DropReply, faultnet.DropRequest} {
		t.Run(fault.String(), func(t *testing.T) {
			dialer := faultnet.NewDialer(nil, 0)
			pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialContext(ctx, "tcp", server.Addr(), redis.DialContextFunc(dialer.DialContext),
					redis.DialReadTimeout(CallTimeout))
			}}
			to := serverTarget(t, server.URL())
			to.src = PoolSource{Pool: pool}
			to.before = func(_ testing.TB, table *storeTable) {
				dialer.SetPlan(faultnet.Once(fault, calls(Scripts[table.script])))
			}
			to.after = func(_ testing.TB, c *storeCase, _ *callView) {
				if fault == faultnet.DropRequest {
					c.want = nil
				}
				c.result, c.err = nil, ErrUnknown
				if Scripts[c.script].Reads {
					c.err = errNoAnswer
				}
			}
			runTables(t, to)
		})
	}
}

// TestStoreRepeated repeats calls that must be repeatable after a lost reply: the second time, nothing changes.
func TestStoreRepeated(t *testing.T) {
	t.Parallel()
	to := serverTarget(t, redistest.Shared(t).URL())
	for _, table := range []*storeTable{
		&ackCases, &shelveCases, &completeCases, &releaseCases, &registerCases, &forgetCases,
		&sweepCases, &condemnCases, &modeCases, &reformCases,
	} {
		t.Run(table.script, func(t *testing.T) {
			for _, c := range table.cases {
				if strings.Contains(c.name, "lost claims") {
					continue // counters only: they count once more
				}
				once := c.do
				c.do = func(s *Store) (any, error) {
					result, err := once(s)
					if err == nil {
						_, err = once(s)
					}
					return result, err
				}
				t.Run(c.name, func(t *testing.T) { c.run(t, to, table) })
			}
		})
	}
}

// TestCallsThatSendNothing: some calls never reach Redis, and their error says so.
func TestCallsThatSendNothing(t *testing.T) {
	server := redistest.Start(t)
	src := dialled(t, server.URL())
	s := NewStore(src, "", redistest.Name(t))
	cause := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	if err := s.Enqueue(ctx, envelopes(1)); !errors.Is(err, cause) || errors.Is(err, ErrUnknown) {
		t.Errorf("context has ended: %v", err)
	}
	server.Stop(t)
	if err := s.Enqueue(bg, envelopes(1)); err == nil || errors.Is(err, ErrUnknown) ||
		!strings.Contains(err.Error(), "connecting to Redis") {
		t.Errorf("no server: %v", err)
	}
	src.Close()
	if err := s.Enqueue(bg, envelopes(1)); !errors.Is(err, ErrClosed) || errors.Is(err, ErrUnknown) {
		t.Errorf("handle is closed: %v", err)
	}
	server.Restart(t)
	// Valkey 9.1 reads its own settings with CONFIG GET when it loads Lua.
	if n := server.CommandStats(t).Total("info", "client|setname", "config|get"); n > 0 {
		t.Errorf("%d commands reached the new server", n)
	}
}

// TestErrorsOfScripts classifies the errors of servers of several versions.
func TestErrorsOfScripts(t *testing.T) {
	for _, c := range []struct {
		answer error
		want   error // nil: neither ErrFull nor ErrUnknown
	}{
		{
			redis.Error("OOM command not allowed when used memory > 'maxmemory'. script: 219c, on @user_script:14."),
			ErrFull,
		},
		{redis.Error("ERR Error running script (call to f_219c): @user_script:14: @user_script: 14: -OOM command not " +
			"allowed when used memory > 'maxmemory'. "), ErrFull},
		{redis.Error("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to " +
			"disk. script: 219c, on @user_script:4."), ErrFull},
		{redis.Error("ERR Error running script (call to f_219c): @user_script:4: @user_script: 4: -MISCONF Redis is " +
			"configured to save RDB snapshots. "), ErrFull},
		{redis.Error("ERR unknown command 'EVALSHA', with args beginning with: '-OOM command not allowed' "), nil},
		{redis.Error("ERR user_script:1: MISCONF script: 219c, on @user_script:4."), nil},
		{redis.Error("WRONGTYPE Operation against a key holding the wrong kind of value"), nil},
		{redis.Error("READONLY You can't write against a read only replica."), nil},
		{redis.Error("BUSY Redis is busy running a script."), nil},
		{errors.New("EOF"), ErrUnknown},
		{os.ErrDeadlineExceeded, ErrUnknown},
		{context.Canceled, ErrUnknown},
	} {
		err := Scripts["ack"].Explain(c.answer)
		for _, kind := range []error{ErrFull, ErrUnknown} {
			if expected := errors.Is(c.want, kind); errors.Is(err, kind) != expected {
				t.Errorf("%q is %v: %v, expected %v", c.answer, kind, !expected, expected)
			}
		}
		if !errors.Is(err, c.answer) || !strings.Contains(err.Error(), "ack") ||
			!strings.HasPrefix(err.Error(), "delayed: ") {
			t.Errorf("%q became %q: expected it to begin with delayed:, to name the script and to keep the cause",
				c.answer, err)
		}
	}
}

// notLookedAt are the keys whose type does not matter to a script: it only checks whether they exist, or overwrites or
// deletes them.
var notLookedAt = map[string][]string{
	"beat":     {"_control", "_processing:w", "_worker:w"}, // it renews the heartbeat all the same
	"known":    {"_functions", "_workers"},                 // its caller has other queues too
	"register": {"_worker:w"},
	"forget":   {"_claims:w", "_worker:w"},
	"lives":    {"_worker:a", "_worker:b", "_worker:c"},
	"publish":  {"_worker:w"},
	"sweep":    {"_worker:l", "_worker:w"},
}

// TestStoreOnKeysOfAnotherType gives each script in turn each of its keys with a wrong type. The result is an error
// that names script and cause, and nothing changes: claims remain, and nothing is stored, counted or removed.
func TestStoreOnKeysOfAnotherType(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--databases", strconv.Itoa(len(storeTables)))
	for i := range storeTables {
		table := &storeTables[i]
		t.Run(table.script, func(t *testing.T) {
			t.Parallel()
			url := fmt.Sprintf("%s/%d", strings.TrimSuffix(server.URL(), "/0"), i)
			to := serverTarget(t, url)
			conn := to.dial(t, "")
			const name = "q"
			noticed := map[string]bool{}
			for _, c := range table.cases {
				if c.err != nil || strings.HasPrefix(c.name, "as many as") {
					continue
				}
				for _, suffix := range keysOfCall(t, to, conn, c) {
					seed := with(c.seed, redistest.State{suffix: "another type"})
					if slices.Contains([]string{"_worker:w", "_sweeper", "_mode"}, suffix) {
						seed[suffix] = redistest.List{"another type"}
					}
					emptyDatabase(t, conn)
					redistest.Seed(t, conn, name, present(seed))
					before := redistest.Dump(t, conn, name)
					_, err := c.do(fixedDay(NewStore(to.src, "", name)))
					noticed[suffix] = noticed[suffix] || err != nil
					if err == nil {
						continue
					}
					if diff := redistest.Diff(redistest.Dump(t, conn, name), before); diff != "" {
						t.Errorf("%s: N%s: after the error %v:\n%s", c.name, suffix, err, diff)
					}
					if !strings.Contains(err.Error(), "WRONGTYPE") || errors.Is(err, ErrFull) ||
						errors.Is(err, ErrUnknown) ||
						!strings.HasPrefix(err.Error(), "delayed: "+table.script+": ") {
						t.Errorf("%s: N%s: expected an error with WRONGTYPE and the script's name, found %v", c.name,
							suffix, err)
					}
				}
			}
			var ignored []string
			for suffix, yes := range noticed {
				if !yes {
					ignored = append(ignored, suffix)
				}
			}
			if slices.Sort(ignored); !slices.Equal(ignored, notLookedAt[table.script]) {
				t.Errorf("it does not look at N%q, expected N%q", ignored, notLookedAt[table.script])
			}
		})
	}
}

func emptyDatabase(t *testing.T, conn redis.Conn) {
	t.Helper()
	if _, err := conn.Do("FLUSHDB"); err != nil {
		t.Fatal(err)
	}
}

// keysOfCall returns the keys of the queue that the script of a case gets.
func keysOfCall(t *testing.T, to *target, conn redis.Conn, c storeCase) (suffixes []string) {
	t.Helper()
	const name = "q"
	emptyDatabase(t, conn)
	redistest.Seed(t, conn, name, present(c.seed))
	r := newRecordingSource(to.src)
	if _, err := c.do(fixedDay(NewStore(r, "", name))); err != nil {
		t.Fatal(err)
	}
	for _, key := range r.calls[len(r.calls)-1].keys {
		if suffix := strings.TrimPrefix(key, name); !strings.HasPrefix(suffix, ".other") {
			suffixes = append(suffixes, suffix)
		}
	}
	return suffixes
}

// calls reports whether a request runs the given script.
func calls(sc *Script) func([]byte) bool {
	return func(request []byte) bool { return bytes.Contains(request, []byte(sc.Sha)) }
}

// A frozen server still accepts connections, but does not answer the first command on them.
func TestConnectingIsBoundedWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	src := dialled(t, server.URL())
	server.Pause(t)
	defer server.Resume(t)
	start := time.Now()
	conn, err := src.Conn(bg, "x")
	if err == nil {
		conn.Close()
		t.Fatal("connected to a server that answers nothing")
	}
	if took := time.Since(start); took > 2*dialTimeout {
		limits.Errorf(t, "failed after %v: %v; expected about %v", took, err, dialTimeout)
	}
}
