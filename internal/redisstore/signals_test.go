package redisstore

import (
	"fmt"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestSignalsOnCluster publishes on each node what a process hears that is connected to one.
func TestSignalsOnCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := NewSignals(DialCluster(t, cluster.URL()))
	defer s.Close()
	b := redistest.NewBench(t, redistest.Shared(t))
	expect := func(c <-chan string, want string) {
		t.Helper()
		if got := redistest.Await(b, "a signal", c); got != want {
			t.Errorf("heard %q, expected %q", got, want)
		}
	}
	c, end := s.Subscribe("{mail}_signals")
	defer end()
	expect(c, "")
	for i, node := range cluster.Nodes {
		node.Do(t, "PUBLISH", "{mail}_signals", fmt.Sprint(i))
		expect(c, fmt.Sprint(i))
		other, end := s.Subscribe(fmt.Sprint("other", i))
		expect(other, "")
		end()
	}
	for _, node := range cluster.Nodes {
		node.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	}
	expect(c, "")
	cluster.Nodes[2].Do(t, "PUBLISH", "{mail}_signals", "after")
	expect(c, "after")
}
