package wire

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestFailuresAreKept adds failures one by one: the last ones are kept, oldest first.
func TestFailuresAreKept(t *testing.T) {
	var kept []byte
	var want []Failed
	for n := range 2 * MaxFailures {
		f := Failed{Attempt: n + 1, At: int64(n), Worker: "w", Error: fmt.Sprintf("failure %d", n), Stack: "f.go:1\n"}
		if n == 3 {
			f = Failed{Attempt: 4, Error: "only an error"}
		}
		kept, want = AddFailure(kept, f), append(want, f)
		want = want[max(0, len(want)-MaxFailures):]
		if got := ParseFailures(kept); !reflect.DeepEqual(got, want) {
			t.Fatalf("after %d:\n%+v, expected\n%+v", n+1, got, want)
		}
	}
}

// TestFailuresAreBounded: long texts lose their end, control characters are escaped, and the oldest failures go when
// all together are too long.
func TestFailuresAreBounded(t *testing.T) {
	long := Failed{
		Attempt: 1, Worker: strings.Repeat("w", 9999), Error: strings.Repeat("é", 9999),
		Stack: strings.Repeat("s", 9999),
	}
	kept := AddFailure(nil, long)
	got := ParseFailures(kept)
	if len(got) != 1 || len(got[0].Worker) != maxFailureWorker || len(got[0].Error) != maxFailureError ||
		len(got[0].Stack) != maxFailureStack {
		t.Fatalf("found %+v", got)
	}
	long.Attempt = 2
	if kept = AddFailure(kept, long); len(kept) > maxFailureBytes {
		t.Errorf("%d bytes are kept, expected at most %d", len(kept), maxFailureBytes)
	}
	if got = ParseFailures(kept); len(got) != 1 || got[0].Attempt != 2 {
		t.Errorf("found %+v, expected only the second failure", got)
	}
	kept = AddFailure(nil, Failed{Worker: "a\nb", Error: "a\nb\xff", Stack: "a\nb\x1b"})
	if got := ParseFailures(kept); got[0] != (Failed{Worker: `a\nb`, Error: `a\nb�`, Stack: "a\nb\\x1b"}) {
		t.Errorf("found %+v", got)
	}
}

// TestFailuresOfOthers: what is no failure is left out, and does not keep a task from running.
func TestFailuresOfOthers(t *testing.T) {
	good := "\x95\x01\x02\xa1w\xa1e\xa0"
	for value, want := range map[string]int{
		"\xc0": 0, "\x07": 0, "\x80": 0, "\x90": 0, "\x91\xc0": 0, "\x91" + good: 1, "\x92\x90" + good: 1,
		"\x91\x94\x01\x02\xa1w\xa1e": 0, "\x91\x95\xa11\x02\xa1w\xa1e\xa0": 0, "\x91\x96\x01\x02\xa1w\xa1e\xa0\x09": 1,
		"\x97" + strings.Repeat(good, 7): MaxFailures,
	} {
		m, err := Parse([]byte("\x93\xa1f\xc0\x81\xa2er"+value), Default)
		if err != nil {
			t.Errorf("%x: %v", value, err)
			continue
		}
		if got := ParseFailures(m.Meta.Extra.Failures); len(got) != want {
			t.Errorf("%x: %d failures, expected %d", value, len(got), want)
		}
		if b := m.Append(nil); string(b) != "\x93\xa1f\xc0\x81\xa2er"+value {
			t.Errorf("%x is written as %x", value, b)
		}
	}
	if _, err := Parse([]byte("\x93\xa1f\xc0\x82\xa2er\x90\xa2er\x90"), Default); err == nil {
		t.Error("twice: expected an error")
	}
	if got := ParseFailures([]byte("\x92\xc0")); got != nil {
		t.Errorf("of a value that is cut off: %+v", got)
	}
}

// TestFailuresLeaveRoom: the largest message that a producer may send, with everything that workers add, is one that
// workers read.
func TestFailuresLeaveRoom(t *testing.T) {
	const big = math.MaxInt32
	var failures []byte
	for range MaxFailures {
		failures = AddFailure(failures, Failed{Attempt: big, At: math.MaxInt64, Worker: strings.Repeat("w", 40)})
	}
	if n := len(ParseFailures(failures)); n != MaxFailures {
		t.Fatalf("%d failures of few bytes are kept", n)
	}
	wide := make([]byte, 0, maxFailureBytes)
	wide = append(AppendArrayHeader(wide, 1), AppendString(nil, strings.Repeat("x", maxFailureBytes-4))...)
	for name, c := range map[string]struct {
		failures []byte
		args     func(room int) []byte
	}{
		"values": {failures, func(int) []byte {
			args := AppendArrayHeader(nil, Default.Elems-7) // the message, path, args, kwargs, retry, meta
			for range Default.Elems - 7 {
				args = append(args, 1)
			}
			return args
		}},
		"bytes": {wide, func(room int) []byte {
			return append(AppendArrayHeader(nil, 1), AppendString(nil, strings.Repeat("x", room))...)
		}},
	} {
		m := Message{Kind: PyExtended, Path: "a:f", Py: new(PyCall)}
		m.Py.Args = c.args(0)
		if room := Default.Bytes - len(m.Append(nil)) - 4; len(m.Py.Args) < 10 {
			m.Py.Args = c.args(room)
		}
		sent := m.Append(nil)
		if _, err := Parse(sent, Default); err != nil {
			t.Fatalf("%s: the message of the producer: %v", name, err)
		}
		m.Meta = Meta{
			ID: NewTaskID(), Retried: big, Deaths: big, DiedAt: math.MaxInt64,
			Extra: &Extra{FirstFailed: math.MaxInt64, Due: math.MaxInt64, AloneDeaths: big, Failures: c.failures},
		}
		if _, err := Parse(m.Append(nil), WorkerLimits); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
