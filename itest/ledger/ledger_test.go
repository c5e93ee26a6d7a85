package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func create(t *testing.T, dir string) *Writer {
	t.Helper()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	want := []Event{
		{Kind: Start, Task: "k1", Worker: "w", Token: "1-1"},
		{Kind: Canceled, Task: "k1", Worker: "w", Token: "1-1", Detail: "delayed: claim lost"},
		{Kind: Acked, Worker: "w", Token: "1-1"},
	}
	for _, e := range want {
		w.Write(e)
	}
	log, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(log) != len(want) {
		t.Fatalf("%d events: %v", len(log), log)
	}
	for i, e := range log {
		if e.Time.IsZero() || i > 0 && e.Time.Before(log[i-1].Time) {
			t.Errorf("event %d has time %v", i, e.Time)
		}
		e.Time = want[i].Time
		if e != want[i] {
			t.Errorf("event %d: expected %v, found %v", i, want[i], e)
		}
	}
}

func TestReadMergesAndOrders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"1.ledger": "10 start a w1 1-1 \n30 end a w1 1-1 \n40 start torn",
		"2.ledger": "20 start b w2 1-1 \n",
		"notes":    "not a ledger\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range log {
		got = append(got, fmt.Sprint(e.Time.UnixNano(), e.Kind, e.Task))
	}
	if want := []string{"10 start a", "20 start b", "30 end a"}; strings.Join(got, ",") != "10starta,20startb,30enda" {
		t.Errorf("found %q, expected %q", got, want)
	}
}

func TestReadRefusesNonsense(t *testing.T) {
	for _, text := range []string{"x start a w t \n", "10 start\n", "\n"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "1.ledger"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if log, err := Read(dir); err == nil {
			t.Errorf("%q was read as %v", text, log)
		}
	}
}

func TestConcurrentWrites(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 500 {
				w.Write(Event{
					Kind: Start, Task: fmt.Sprintf("k%d", 500*i+j), Worker: strings.Repeat("w", 32),
					Token: "1-1",
				})
			}
		})
	}
	wg.Wait()
	log, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(log.ByTask()); n != 4000 {
		t.Errorf("%d tasks", n)
	}
}

func TestQuestions(t *testing.T) {
	log := Log{
		{Kind: Start, Task: "a", Worker: "w1", Token: "1-1"},
		{Kind: Start, Task: "b", Worker: "w1", Token: "1-2"},
		{Kind: Start, Task: "a", Worker: "w2", Token: "1-1"},
		{Kind: End, Task: "a", Worker: "w2", Token: "1-1"},
		{Kind: Acked, Worker: "w2", Token: "1-1"},
		{Kind: Refused, Worker: "w1", Token: "1-2"},
		{Kind: Refused, Worker: "w9", Token: "9-9"},
	}
	if missing := log.Of(End).Missing([]string{"c", "b", "a"}); !slices.Equal(missing, []string{"c", "b"}) {
		t.Errorf("missing: %q", missing)
	}
	if twice := log.Of(Start).Repeated(); len(twice) != 1 || len(twice["a"]) != 2 {
		t.Errorf("started twice: %v", twice)
	}
	if n := len(log.Of(Acked, Refused)); n != 3 {
		t.Errorf("%d acks", n)
	}
	named := log.WithTasks()
	var tasks []string
	for _, e := range named.Of(Acked, Refused) {
		tasks = append(tasks, e.Task)
	}
	if !slices.Equal(tasks, []string{"a", "b", ""}) {
		t.Errorf("tasks of the acks: %q", tasks)
	}
	if log[4].Task != "" {
		t.Error("WithTasks changed the log itself")
	}
	if n := len(named.ByClaim()[Claim("w2", "1-1")]); n != 3 {
		t.Errorf("%d events of one claim", n)
	}
	if n := len(log.ByWorker()["w1"]); n != 3 {
		t.Errorf("%d events of one worker", n)
	}
}
