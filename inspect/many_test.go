package inspect_test

import (
	"fmt"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestManyQueues describes many queues, and the workers that serve them all, with few calls: these do not grow with
// each queue.
func TestManyQueues(t *testing.T) {
	t.Parallel()
	const queues = 250
	server := redistest.Start(t)
	conn := server.Dial(t)
	do := redistest.DoOn(conn)
	for i := range queues {
		name := fmt.Sprintf("queue-%03d", i)
		do("HSET", "delayed_queues", name, 0)
		for _, worker := range []string{"alive", "dead"} {
			do("SADD", name+"_workers", worker)
			do("HSET", name+"_processing:"+worker, "1-1", "x", fmt.Sprint(i, "-1"), "y")
			do("HSET", name+"_functions", worker+" status", redistest.HostileStatus(fmt.Sprint("library ", worker)))
		}
		do("SET", name+"_worker:alive", "host:42:1", "EX", 3600)
	}
	do("SADD", "queue-007_workers", "large")
	do("SET", "queue-007_worker:large", "host:43:1", "EX", 3600)
	do("HSET", "queue-007_functions", "large status", redistest.HostileStatus(string(make([]byte, 1<<20))))
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	calls := func() int64 {
		stats := redistest.CommandStatsOn(t, conn)
		return stats["evalsha"] + stats["eval"]
	}
	before := calls()
	all, err := ins.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != queues {
		t.Errorf("%d queues", len(all))
	}
	for i := range all {
		workers := 1
		if all[i].Name == "queue-007" {
			workers = 2
		}
		if all[i].Workers != workers || all[i].Active == 0 {
			t.Errorf("%+v", all[i])
		}
	}
	if n := calls() - before; n > 15 {
		t.Errorf("Queues takes %d calls", n)
	}
	before = calls()
	workers, err := ins.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := calls() - before; n > 10 {
		t.Errorf("Workers takes %d calls", n)
	}
	versions := map[string]string{}
	for i := range workers {
		versions[workers[i].ID] = fmt.Sprint(workers[i].Version, " on ", len(workers[i].Queues))
	}
	want := map[string]string{"alive": "library alive on 250", "dead": "library dead on 250", "large": " on 1"}
	if fmt.Sprint(versions) != fmt.Sprint(want) {
		t.Errorf("expected %v, found %v", want, versions)
	}
	do("SET", "queue-100_workers", "no set")
	do("SET", "queue-101_functions", "no hash")
	if workers, err = ins.Workers(t.Context()); err != nil || len(workers) != 3 || len(workers[0].Queues) != 248 {
		t.Errorf("with keys of wrong types: %d workers, %v", len(workers), err)
	}
	if _, err := ins.Workers(t.Context(), "queue-100"); err == nil {
		t.Error("with a key of a wrong type: expected an error")
	}
}
