package delayed_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/redistest"
)

// published returns what Redis knows about a worker's functions; the zero value if it knows nothing.
func (b *bench) published(w *started) (found catalog.List) {
	b.T.Helper()
	raw, err := b.store.FunctionsOf(b.T.Context(), w.ID())
	if err != nil {
		b.T.Fatal(err)
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &found); err != nil || found.Version != catalog.Version {
			b.T.Fatalf("%v in %s", err, raw)
		}
	}
	return found
}

// A living worker publishes the signatures of its functions in Redis, also of those that it registers later. After its
// heartbeat was lost, it publishes them again, with its status.
func TestFunctionsArePublished(t *testing.T) {
	t.Parallel()
	type item struct {
		SKU   string `msgpack:"sku"`
		Count *int
	}
	b := newBench(t)
	place := b.fn("Place", func(int64, []item) (uint64, error) { return 0, nil }, delayed.Optional(1))
	cfg := b.config()
	second := b.Name + "-second"
	cfg.Queues = delayed.Strict{b.Name, second}
	w := b.work(cfg, place)
	b.Until("they are published", func() bool { return len(b.published(w).Functions) == 1 })
	f := b.published(w).Functions[0]
	if f.Path != b.Name+".Place" || f.Optional != 1 || len(f.Params) != 2 || f.Params[0].Type.Kind != "int64" ||
		f.Result.Type.Kind != "uint64" {
		t.Errorf("published: %+v", f)
	}
	list := f.Params[1].Type
	fields := b.published(w).Types[list.Elem.Name].Fields
	if list.Kind != "list" || len(fields) != 2 || fields[0].Name != "sku" || fields[1].Name != "Count" ||
		fields[1].Type.Kind != "optional" {
		t.Errorf("fields of the struct: %+v", fields)
	}
	b.Until("they are published on the other queue",
		func() bool { return b.Do("HGET", second+"_functions", w.ID()) != nil })

	if err := w.Register(b.fn("Later", func() {})); err != nil {
		t.Fatal(err)
	}
	b.Until("the new one is published", func() bool { return len(b.published(w).Functions) == 2 })
	b.Do("DEL", b.Name+"_worker:"+w.ID(), b.Name+"_functions") // as if Redis had lost it
	b.Until("they are published again", func() bool { return len(b.published(w).Functions) == 2 })
	b.Until("so is the status", func() bool { return b.Do("HGET", b.Name+"_functions", w.ID()+" status") != nil })
	w.mustStop()
	if b.Size("_functions") != 0 || b.Int("EXISTS", second+"_functions") != 0 {
		t.Error("left when the worker has stopped")
	}
	b.Check(redistest.Invariants{})
}

// A function that is registered while the worker runs is published at once, not with the next heartbeat.
func TestNewFunctionsArePublishedAtOnce(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.HeartbeatLife = 10 * time.Minute
	w := b.work(cfg, b.fn("First", func() {}))
	b.Until("it is published", func() bool { return len(b.published(w).Functions) == 1 })
	b.Must(w.Register(b.fn("Later", func() {})))
	b.Until("the new one is published", func() bool { return len(b.published(w).Functions) == 2 })
}

// Tasks do not wait when publishing fails.
func TestWorkerRunsThoughItCannotPublish(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Do("SET", b.Name+"_functions", "another type")
	ran := make(chan int, 1)
	f := b.fn("f", func(n int) { ran <- n })
	w := b.work(b.config(), f)
	b.delay(f, 7)
	if n := await(b, "the task", ran); n != 7 {
		t.Errorf("ran with %d", n)
	}
	b.Until("it is logged", func() bool { return strings.Contains(b.log.String(), "cannot publish the functions") })
	b.Do("DEL", b.Name+"_functions")
	b.Until("it is published", func() bool { return len(b.published(w).Functions) == 1 })
	b.Idle()
}
