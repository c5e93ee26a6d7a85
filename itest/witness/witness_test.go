//go:build unix

package witness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
)

func TestMain(m *testing.M) {
	code := m.Run()
	redistest.StopShared()
	os.Exit(code)
}

// taskOf returns "k1" for a message that contains it.
func taskOf(message []byte) string {
	i := bytes.LastIndex(message, []byte("\xa2k"))
	if i < 0 {
		return ""
	}
	return string(message[i+1 : i+3])
}

// TestWorker: a real worker runs two tasks, one of which gets no answer to its first ack.
func TestWorker(t *testing.T) {
	server, queue, dir := redistest.Shared(t), redistest.Name(t), t.TempDir()
	w, err := ledger.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	dialer := faultnet.NewDialer(nil, 0)
	source := New(server.Pool(t, redis.DialContextFunc(dialer.DialContext)), w, taskOf)
	server.Do(t, "SCRIPT", "LOAD", source.ack.text) // or the answer that it is unknown would be dropped
	dialer.SetPlan(faultnet.Once(faultnet.DropReply,
		func(req []byte) bool { return bytes.Contains(req, []byte(source.ack.sha)) }))
	rdb := delayed.FromSource(source)
	worker, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	run := make(chan string, 2)
	task := delayed.Func(func(key string) { run <- key + " " + source.Token(key) }, delayed.Name("witness.task"))
	if err := worker.Register(task); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	q := delayed.NewQueue(queue, rdb)
	for _, key := range []string{"k1", "k2"} {
		if _, err := q.Delay(task, key); err != nil {
			t.Fatal(err)
		}
		got := <-run
		if name, token, _ := strings.Cut(got, " "); name != key || !strings.HasSuffix(token, "-1") {
			t.Errorf("%s ran as %q", key, got)
		}
		waitForAcks(t, dir, key)
		// From now on, replies to claims name the version of the control hash.
		if err := errors.Join(q.Pause(t.Context()), q.Resume(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	log, err := ledger.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	// The reply of the first call of ack was dropped, so the worker sent it again; the claim existed. It may belong to
	// either task, because a claim, which is not dropped, may have acknowledged the other.
	acked, unclear := log.Of(ledger.Acked), log.Of(ledger.Unclear)
	if len(acked) != 2 || acked[0].Worker != worker.ID() || !strings.HasSuffix(acked[0].Token, "-1") {
		t.Errorf("acked: %v", acked)
	}
	if refused := log.Of(ledger.Refused); len(unclear) != 1 || len(refused) > 0 {
		t.Fatalf("unclear: %v, refused: %v", unclear, refused)
	}
	if !slices.ContainsFunc(acked, func(e ledger.Event) bool { return e.Token == unclear[0].Token }) {
		t.Errorf("unclear: %v, acked: %v", unclear, acked)
	}
}

// waitForAcks waits until as many acks as there are tasks up to key have got an answer.
func waitForAcks(t *testing.T, dir, key string) {
	t.Helper()
	late := time.After(60 * time.Second)
	for {
		log, err := ledger.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(log.Of(ledger.Acked, ledger.Refused)) == int(key[1]-'0') {
			return
		}
		select {
		case <-late:
			t.Fatalf("no answered ack of %s: %v", key, log)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestOtherCallsPass(t *testing.T) {
	server, key := redistest.Shared(t), redistest.Name(t)
	w := New(server.Pool(t), nil, taskOf)
	conn, err := w.Conn(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := redis.Int(redis.DoWithTimeout(conn, time.Second, "INCR", key)); err != nil || n != 1 {
		t.Errorf("DoWithTimeout: %d, %v", n, err)
	}
	if n, err := redis.Int(redis.DoContext(conn, t.Context(), "INCR", key)); err != nil || n != 2 {
		t.Errorf("DoContext: %d, %v", n, err)
	}
	for _, receive := range []func() (any, error){
		func() (any, error) { return redis.ReceiveWithTimeout(conn, time.Second) },
		func() (any, error) { return redis.ReceiveContext(conn, t.Context()) },
	} {
		if err := errors.Join(conn.Send("INCR", key), conn.Flush()); err != nil {
			t.Fatal(err)
		}
		if _, err := redis.Int(receive()); err != nil {
			t.Error(err)
		}
	}
	if w.Slot("a") != w.Slot("b") {
		t.Error("a single server has one slot")
	}
}
