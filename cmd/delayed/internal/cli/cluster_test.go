package cli_test

import (
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/rediscluster"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := redistest.StartCluster(t)
	rdb, err := rediscluster.Dial(c.URL())
	b.Must(err)
	defer rdb.Close()
	for _, name := range []string{"{a}", "{b}", "{c}:low"} {
		_, err := delayed.NewQueue(name, rdb).Delay(welcome, 1, "en")
		b.Must(err)
	}
	b.env = map[string]string{"REDIS_URL": c.URL()}
	out := b.ok("queues")
	for _, name := range []string{"{a}", "{b}", "{c}:low"} {
		if !strings.Contains(out, name) {
			t.Errorf("queues of a cluster lack %s: %s", name, out)
		}
	}
	b.ok("scale", "{a}", "{b}")
	b.ok("stats", "--per", "second")
	b.ok("bench", "--tasks", "50", "--concurrency", "2")
	if out := b.ok("queues"); strings.Contains(out, "bench") {
		t.Errorf("bench has left its queue: %s", out)
	}
	b.ok("archive", "--all", "--queue", "{a}", "--state", "pending", "--yes")
	if out := b.ok("tasks", "-s", "archived"); !strings.Contains(out, `welcome(1, "en")`) {
		t.Errorf("tasks prints %s", out)
	}
}
