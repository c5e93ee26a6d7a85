package delayed_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/wire"
)

type (
	structInner struct {
		B int
		A string `msgpack:"a"`
	}
	structOuter struct {
		In   structInner
		List []*structInner
		Any  any
		At   time.Time
		Raw  []byte
	}
)

var structArg = structOuter{
	In: structInner{1, "x"}, List: []*structInner{{2, "y"}, nil}, Any: structInner{3, "z"}, At: time.Unix(1, 0).UTC(),
	Raw: []byte{7},
}

// structArg in messages, by name and by position.
var (
	structByName = wireDict{
		{K: "In", V: wireDict{{K: "B", V: 1}, {K: "a", V: "x"}}},
		{K: "List", V: wireList{wireDict{{K: "B", V: 2}, {K: "a", V: "y"}}, nil}},
		{K: "Any", V: wireDict{{K: "B", V: 3}, {K: "a", V: "z"}}},
		{K: "At", V: time.Unix(1, 0)},
		{K: "Raw", V: []byte{7}},
	}
	structByPosition = wireList{
		wireList{1, "x"}, wireList{wireList{2, "y"}, nil}, wireList{3, "z"}, time.Unix(1, 0), []byte{7},
	}
)

// Each way of enqueueing a call writes structs by name, at every depth, and by position on legacy queues.
func TestStructsGoByNameExceptOnLegacyQueues(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int, structOuter) {})
	for _, c := range []struct {
		legacy bool
		want   any
	}{{false, structByName}, {true, structByPosition}} {
		q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: c.legacy})
		if err != nil {
			t.Fatal(err)
		}
		list := packed(wireList{1, c.want})
		call, byPath := delayed.Call(f, 1, structArg), delayed.NewGoTask(b.Name+".f", 1, structArg)
		py := delayed.NewPyTask("m:f", []any{1, structArg}, map[string]any{"k": structArg})
		for name, enqueue := range map[string]func(q *delayed.Queue) error{
			"Delay":     func(q *delayed.Queue) error { _, err := q.Delay(f, 1, structArg); return err },
			"Enqueue":   func(q *delayed.Queue) error { _, err := q.Enqueue(t.Context(), call); return err },
			"DelayMany": func(q *delayed.Queue) error { _, err := q.DelayMany(t.Context(), call); return err },
			"NewGoTask": func(q *delayed.Queue) error { _, err := q.Enqueue(t.Context(), byPath); return err },
			"with options": func(q *delayed.Queue) error {
				_, err := q.With(delayed.Timeout(time.Hour)).Enqueue(t.Context(), call)
				return err
			},
		} {
			if err := enqueue(q); err != nil {
				t.Fatal(name, err)
			}
			if m := b.take(); !bytes.Equal(m.Payload, list) {
				t.Errorf("%s, legacy %v: payload %x, expected %x", name, c.legacy, m.Payload, list)
			}
		}
		if _, err := q.Enqueue(t.Context(), py); err != nil {
			t.Fatal(err)
		}
		kwargs := packed(wireDict{{K: "k", V: c.want}})
		if m := b.take(); !bytes.Equal(m.Args(), list) || !bytes.Equal(m.Kwargs(), kwargs) {
			t.Errorf("Python, legacy %v: %x and %x, expected %x and %x", c.legacy, m.Args(), m.Kwargs(), list, kwargs)
		}

		// Equal calls have one lock, however they are enqueued.
		unique := q.With(delayed.Unique(time.Hour))
		if _, err := unique.Delay(f, 1, structArg); err != nil {
			t.Fatal(err)
		}
		if _, err := unique.Enqueue(t.Context(), call); err == nil {
			t.Errorf("legacy %v: Delay and Call of the same arguments have different locks", c.legacy)
		}
		b.Do("DEL", b.Name, b.Name+"_noti", b.Name+"_locks")

		// A periodic entry that code declares uses the form of its queue.
		s, err := delayed.NewScheduler(b.rdb, delayed.SchedulerConfig{
			Queue: b.Name, Legacy: c.legacy, Owner: "test", Logger: b.log.Logger(),
			Entries: []delayed.Entry{{Name: "e", Spec: "@hourly", Task: call}},
		})
		b.Must(err)
		b.Must(delayed.Declare(bg, s))
		if msg := parsed(t, b.definition("e").Message); !bytes.Equal(msg.Payload, list) {
			t.Errorf("periodic, legacy %v: payload %x, expected %x", c.legacy, msg.Payload, list)
		}
		b.Must(q.Periodic().Remove(bg, "e"))

		// Other arguments for an archived task use it as well.
		b.archive(1)
		page, _, err := q.Archived(t.Context(), 0, 1)
		if err != nil || len(page) != 1 {
			t.Fatal(page, err)
		}
		again := delayed.NewGoTask(page[0].Function, 1, structArg)
		if err := q.Ref(page[0].ID).RunAgainWith(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		if m := b.take(); !bytes.Equal(m.Payload, list) {
			t.Errorf("RunAgainWith, legacy %v: payload %x, expected %x", c.legacy, m.Payload, list)
		}
	}
}

// take removes and returns the only pending message.
func (b *bench) take() wire.Message {
	b.T.Helper()
	list := b.List("")
	if len(list) != 1 {
		b.T.Fatalf("expected one pending message, found %q", list)
	}
	b.Do("DEL", b.Name, b.Name+"_noti")
	m, err := wire.Parse([]byte(list[0]), wire.Default)
	if err != nil {
		b.T.Fatalf("%s: %v", hex.EncodeToString([]byte(list[0])), err)
	}
	return m
}

type (
	wireDict []wirePair // a map on the wire
	wireList []any      // an array on the wire
	wirePair struct{ K, V any }
)

// packed encodes a value without the codecs under test.
func packed(v any) []byte { return appendPacked(nil, v) }

func appendPacked(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return wire.AppendNil(b)
	case bool:
		return wire.AppendBool(b, v)
	case int:
		return wire.AppendInt(b, int64(v))
	case uint64:
		return wire.AppendUint(b, v)
	case float64:
		return wire.AppendFloat64(b, v)
	case string:
		return wire.AppendString(b, v)
	case []byte:
		return wire.AppendBin(b, v)
	case time.Time:
		return wire.AppendTime(b, v)
	case wireList:
		b = wire.AppendArrayHeader(b, len(v))
		for _, x := range v {
			b = appendPacked(b, x)
		}
		return b
	case wireDict:
		b = wire.AppendMapHeader(b, len(v))
		for _, x := range v {
			b = appendPacked(appendPacked(b, x.K), x.V)
		}
		return b
	default:
		panic(fmt.Sprintf("pack cannot write a %T", v))
	}
}
