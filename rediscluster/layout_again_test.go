package rediscluster

import (
	"sync/atomic"
	"testing"

	"github.com/godelayed/delayed/internal/fakeredis"
)

// TestAskingGoesOnAfterAFailure refuses the layout once. A client that remembered only the failure would never find the
// cluster again.
func TestAskingGoesOnAfterAFailure(t *testing.T) {
	var ready atomic.Bool
	var node *fakeredis.Server
	node = startFake(t, func(args []string) string {
		if isClusterSlots(args) && ready.Load() {
			return slotsReply("127.0.0.1", node.Port())
		}
		return "-LOADING Redis is loading the dataset in memory\r\n"
	})
	l := newLayout([]string{node.Addr()}, nil, func(map[string]bool) {})
	t.Cleanup(l.close)
	if err := l.refresh(t.Context()); err == nil {
		t.Fatal("expected an error of the node that loads")
	}
	ready.Store(true)
	if err := l.refresh(t.Context()); err != nil {
		t.Errorf("expected the layout, found %v", err)
	}
}
