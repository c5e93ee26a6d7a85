package delayed_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

func TestUnknownFunctionIsParkedUntilAWorkerKnowsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var known, later atomic.Int64
	f := b.fn("known", func(int) { known.Add(1) })
	g := b.fn("later", func(int) { later.Add(1) })
	w := b.work(b.config(), f)
	ref := b.delay(g, 1)
	for i := range 250 {
		b.delay(g, i)
	}
	b.delay(f, 1)
	b.Until("all are parked", func() bool { return b.Size("_parked") == 251 && known.Load() == 1 })
	b.Check(redistest.Invariants{})
	info := b.Hash("_info")[ref.ID()]
	if !strings.Contains(info, "unknown function") || !strings.Contains(info, b.Name+".later") {
		t.Errorf("info %q", info)
	}
	if err := w.Register(g); err != nil { // while the worker runs
		t.Fatal(err)
	}
	b.Until("they have run", func() bool { return later.Load() == 251 })
	b.Idle()
	if b.Size("_parked")+b.Size("_tasks")+b.Size("_info") != 0 {
		t.Errorf("left: %v", redistest.Dump(t, b.Conn, b.Name))
	}
}

func TestParkedTasksOfOthersDoNotHideThoseOfOurs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ran atomic.Int64
	foreign := b.fn("foreign", func(int) {})
	ours := b.fn("ours", func(int) { ran.Add(1) })
	w := b.work(b.config())
	for i := range 3 * redisstore.ParkedPage {
		b.delay(foreign, i)
	}
	b.Until("they are parked", func() bool { return b.Size("_parked") == 3*redisstore.ParkedPage })
	for i := range redisstore.ParkedPage {
		b.delay(ours, i)
	}
	b.Until("ours are parked", func() bool { return b.Size("_parked") == 4*redisstore.ParkedPage })
	w.mustStop()
	b.work(b.config(), ours)
	b.Until("ours have run", func() bool { return ran.Load() == redisstore.ParkedPage })
	if n := b.Size("_parked"); n != 3*redisstore.ParkedPage {
		t.Errorf("%d parked, expected %d", n, 3*redisstore.ParkedPage)
	}
}

func TestPythonTaskIsParkedOrHandedOn(t *testing.T) {
	b := newBench(t)
	task := delayed.NewPyTask("m:f", []any{1, "a"}, map[string]any{"k": true})
	if _, err := b.q.Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	message := b.List("")[0]
	w := b.work(b.config())
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	for _, m := range b.Hash("_tasks") {
		if m != message {
			t.Errorf("parked as %q, expected %q", m, message)
		}
	}
	w.mustStop()
	if _, err := b.q.Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	want := []string{message, b.List("")[0]}
	cfg := b.config()
	cfg.PythonQueue = b.Name + "-py"
	b.work(cfg)
	b.Until("it is handed on, and so is the one that was parked",
		func() bool { return b.Size("-py") == 2 && b.Size("-py_noti") == 2 && b.Size("_parked") == 0 })
	got, err := redis.Strings(b.Conn.Do("LRANGE", b.Name+"-py", 0, -1))
	b.Must(err)
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("handed on as %q, expected %q", got, want)
	}
	b.Idle()
}

func TestUndecodableMessageIsArchivedAsItIs(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(int) { ran.Add(1) })
	rubbish := []string{
		"", "\xc1", "\x92\xa3foo", "not a message", "\x93\xa1a\xc4\x01", strings.Repeat("\x91", 5000),
		"\x82\xa1a\x01\xa1b\x02",
	}
	for _, m := range rubbish {
		b.Do("RPUSH", b.Name, m)
		b.Do("RPUSH", b.Name+"_noti", "1")
		b.delay(f, 1)
	}
	b.work(b.config(), f)
	b.Until("all are archived",
		func() bool { return b.Size("_archived") == len(rubbish) && ran.Load() == int64(len(rubbish)) })
	left := map[string]bool{}
	for _, m := range b.Hash("_tasks") {
		left[m] = true
	}
	for _, m := range rubbish {
		if !left[m] {
			t.Errorf("%q is not in the archive", m)
		}
	}
	b.Idle()
	b.Check(redistest.Invariants{})
}

// TestNoValueAndNoControlCharacterIsKept: no line of the log and nothing that Redis keeps contains argument values or
// control characters of a task.
func TestNoValueAndNoControlCharacterIsKept(t *testing.T) {
	b := newBench(t)
	const secret, forged = "hunter2", "\n2026-01-01 level=error msg=forged\x1b[2J"
	f := b.fn("f", func(n int8, s string) error { return errors.New("two\nlines\x1b") })
	path := b.Name + ".f"
	payload := func(args ...any) []byte {
		p, _, err := function.EncodeArgs(wire.ByName, "a.b", args, nil)
		b.Must(err)
		return p
	}
	four := 873_193_751
	for i, m := range []wire.Message{
		{Kind: wire.GoExtended, Path: path, Payload: payload(four, secret), Meta: wire.Meta{HasN: true, N: 2}},
		{Kind: wire.GoExtended, Path: path, Payload: payload(1, four), Meta: wire.Meta{HasN: true, N: 2}},
		{Kind: wire.GoExtended, Path: path, Payload: payload(secret), Meta: wire.Meta{HasN: true, N: 1}},
		{Kind: wire.GoExtended, Path: path, Payload: payload(float64(four), true), Meta: wire.Meta{HasN: true, N: 2}},
		{
			Kind: wire.GoExtended, Path: path, Payload: payload(map[string]int{secret: four}, ""),
			Meta: wire.Meta{HasN: true, N: 2},
		},
		{Kind: wire.GoPlain, Path: path, Payload: wire.AppendInt(nil, int64(four))},
		{Kind: wire.GoPlain, Path: "a.b" + forged},
		{
			Kind: wire.GoExtended, Path: path, Payload: payload(1, secret),
			Meta: wire.Meta{HasN: true, N: 2, HasMaxRetry: true},
		},
	} {
		if m.Kind == wire.GoExtended {
			m.Meta.ID = fmt.Sprint(i, forged)
		}
		b.Do("RPUSH", b.Name, m.Append(nil))
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	rubbish := [][]byte{
		wire.AppendInt(nil, int64(four)),
		append([]byte("\x92\xa1f"), wire.AppendInt(nil, int64(four))...),
	}
	for _, m := range rubbish {
		b.Do("RPUSH", b.Name, m)
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	w := b.work(b.config(), f)
	b.Until("all are filed", func() bool { return b.Size("_archived")+b.Size("_parked") == 8+len(rubbish) })
	w.mustStop()
	texts := map[string]string{"log": b.log.String()}
	for id, raw := range b.Hash("_info") {
		i := wire.ParseInfo([]byte(raw))
		texts["info of "+id] = i.Error + i.Function + string(i.Reason)
		if strings.ContainsFunc(i.Error+i.Function+string(i.Reason), wire.IsControl) {
			t.Errorf("%q holds control characters: %+v", id, i)
		}
	}
	for what, text := range texts {
		if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprint(four)) {
			t.Errorf("%s holds a value: %s", what, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "2026-01-01") ||
				strings.ContainsFunc(strings.TrimSuffix(line, "\n"), wire.IsControl) {
				t.Errorf("%s has the line %q", what, line)
			}
		}
	}
}

func TestParkedForTooLongIsArchived(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	g := b.fn("g", func(int) {})
	w := b.work(b.config())
	ref := b.delay(g, 1)
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	w.mustStop()
	b.Do("ZADD", b.Name+"_parked", time.Now().Add(-time.Second).UnixMilli(), ref.ID())
	b.work(b.config())
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 && b.Size("_parked") == 0 })
	info := b.Hash("_info")[ref.ID()]
	if !strings.Contains(info, "parked too long") || !strings.Contains(info, b.Name+".g") {
		t.Errorf("info %q", info)
	}
	b.Check(redistest.Invariants{})
}

// TestTextsForLogsAreOneLine: texts that callers log themselves stay one line, whatever id the producer has chosen.
func TestTextsForLogsAreOneLine(t *testing.T) {
	const forged = "x\n2026-01-01 level=error\x1b[2J\u2028"
	b := newBench(t)
	q := delayed.NewQueue("mail", b.rdb.WithPrefix(forged))
	m := wire.Message{Kind: wire.GoExtended, Path: "a.b" + forged, Meta: wire.Meta{ID: forged}}
	b.Do("RPUSH", b.Name, m.Append(nil))
	b.Do("RPUSH", b.Name+"_noti", "1")
	w, h := b.listened(b.config())
	b.start(w)
	b.Until("the task is parked", func() bool { return len(h.of(event.TaskParked)) == 1 })
	for what, text := range map[string]string{
		"Queue":     q.String(),
		"Ref":       q.Ref(forged).String(),
		"Task":      h.of(event.TaskParked)[0].Task.String(),
		"TaskError": (&delayed.TaskError{ID: forged, Text: forged}).Error(),
	} {
		if strings.ContainsFunc(text, wire.IsControl) || !strings.Contains(text, `x\n2026-01-01`) {
			t.Errorf("%s: %q", what, text)
		}
	}
}
