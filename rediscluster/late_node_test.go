package rediscluster

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/limits"
)

// A node that was dialled while it imported its first slot, has served since, and stands still after it was replaced:
// its calls end as those of any other node.
func TestCallToANodeThatCameLateEnds(t *testing.T) {
	t.Parallel()
	var a, b *fakeredis.Server
	var owner atomic.Pointer[fakeredis.Server] // of all slots
	frozen, thawed := atomic.Bool{}, make(chan struct{})
	slots := func() string { return slotsReply("127.0.0.1", owner.Load().Port()) }
	b = startFake(t, func(args []string) string {
		if frozen.Load() {
			<-thawed
		}
		if isClusterSlots(args) {
			return slots()
		}
		return "+OK\r\n"
	})
	t.Cleanup(func() { close(thawed) }) // before the fake is closed, which waits for it
	a = startFake(t, func(args []string) string {
		switch {
		case isClusterSlots(args):
			return slots()
		case owner.Load() == a:
			return fmt.Sprintf("-ASK %d %s\r\n", slotK, b.Addr())
		}
		return fmt.Sprintf("-MOVED %d %s\r\n", slotK, b.Addr())
	})
	owner.Store(a)
	src := open(t, "redis://"+a.Addr())
	c := connTo(t, src, "k")
	if reply, err := c.Do("GET", "k"); err != nil || reply != "OK" { // by ASK: b serves no slot yet
		t.Fatalf("GET: %v, %v", reply, err)
	}
	<-time.After(2 * refreshPause) // the layout was asked for just now, and is not asked for again so soon
	owner.Store(b)
	if reply, err := c.Do("GET", "k"); err != nil || reply != "OK" { // by MOVED
		t.Fatalf("GET: %v, %v", reply, err)
	}
	eventually(t, "the layout has the node", func() bool { return src.layout.serves(b.Addr()) })
	frozen.Store(true)
	owner.Store(a) // it takes over
	began := time.Now()
	_, err := c.Do("GET", "k")
	if took := time.Since(began); !errors.Is(err, errReplaced) {
		t.Errorf("the call ended after %v with %v, expected that it ends because the node was replaced", took, err)
	} else if took > 15*time.Second {
		limits.Errorf(t, "the call ended after %v", took)
	}
}
