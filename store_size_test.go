package delayed

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

func bigMessage(i int) envelope {
	msg := wire.Message{
		Kind: wire.GoExtended, Path: "a.b",
		Payload: wire.AppendBin(nil, bytes.Repeat([]byte{'x'}, 1<<20-200)), Meta: wire.Meta{ID: fmt.Sprint(i)},
	}
	return envelope{id: msg.Meta.ID, message: msg.Append(nil)}
}

// largest is how many messages of a megabyte one script may move.
const largest = maxClaimBytes>>20 + 1

func sized(t *testing.T) (*bench, *store) {
	t.Helper()
	b := newBenchOn(t, redistest.Start(t))
	return b, newStore(b.rdb.loops, "", b.Name)
}

func TestClaimTakesNoMoreThanItsBytes(t *testing.T) {
	b, s := sized(t)
	for i := range 100 {
		if err := s.enqueue(t.Context(), []envelope{bigMessage(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.register(t.Context(), "w", time.Minute, ""); err != nil {
		t.Fatal(err)
	}
	before := b.Server.CommandStats(t)
	got, err := s.claim(t.Context(), claimCall{worker: "w", batch: 1, most: 1000})
	if err != nil {
		t.Fatal(err)
	}
	m, left := got.messages, got.left
	if len(m) > largest || left != 100-len(m) {
		t.Errorf("claimed %d messages of a megabyte, %d are left", len(m), left)
	}
	if n := b.Server.CommandStats(t).Since(before)["lpush"]; n > 16 {
		t.Errorf("%d messages were taken and put back", n)
	}
}

func TestMoveTakesNoMoreThanItsBytes(t *testing.T) {
	b, s := sized(t)
	for i := range 40 {
		if err := s.schedule(t.Context(), []envelope{bigMessage(i)}, 1, true); err != nil {
			t.Fatal(err)
		}
	}
	moved := 0
	b.Until("all are moved", func() bool {
		n, _, _, err := s.move(t.Context(), shelfScheduled, moveBatch)
		if err != nil || n > largest {
			t.Fatalf("one call moved %d messages of a megabyte, %v", n, err)
		}
		moved += n
		return moved == 40
	})
}

func TestSweepTakesNoMoreThanItsBytes(t *testing.T) {
	b, s := sized(t)
	for i := range 40 {
		b.Do("HSET", s.keys.processing+"dead", fmt.Sprintf("1-%d", i+1), bigMessage(i).message)
	}
	g := newSweepGroup(b.rdb.loops, "", 2*time.Second, newContact(2*time.Second), newJournal(b.log.logger()))
	before := b.Server.CommandStats(t)
	if n, err := g.sweepHash(t.Context(), s, "dead"); n != 40 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	if n := b.Server.CommandStats(t).Since(before)["evalsha"]; n < 40/largest {
		t.Errorf("%d scripts for 40 messages of a megabyte", n)
	}
}

func TestParkedTasksCostLittle(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t))
	const n = 1000
	payload := wire.AppendBin(nil, bytes.Repeat([]byte{'x'}, 64<<10))
	for i := range n {
		msg := wire.Message{
			Kind: wire.GoExtended, Path: "un.known", Payload: payload,
			Meta: wire.Meta{ID: fmt.Sprint(i)},
		}
		info := wire.Info{Reason: "unknown function", Function: "un.known", At: time.Now()}
		b.Do("HSET", b.Name+"_tasks", msg.Meta.ID, msg.Append(nil))
		b.Do("HSET", b.Name+"_info", msg.Meta.ID, info.Encode())
		b.Do("ZADD", b.Name+"_parked", time.Now().Add(time.Hour).UnixMilli(), msg.Meta.ID)
	}
	sent := func() (total int) {
		text, _ := redis.String(b.Do("INFO", "stats"), nil)
		for line := range strings.Lines(text) {
			if v, ok := strings.CutPrefix(line, "total_net_output_bytes:"); ok {
				_, _ = fmt.Sscan(v, &total)
			}
		}
		return total
	}
	w := b.work(b.config(), b.fn("f", func() {}))
	start, before := b.Server.CommandStats(t)["hstrlen"], sent()
	b.Until("it has looked at all of them", func() bool {
		w.moveNow()
		return b.Server.CommandStats(t)["hstrlen"] >= start+2*n
	})
	if got := sent() - before; got > n<<10*2 {
		t.Errorf("an idle worker read %d bytes to look at %d parked tasks", got, n)
	}
}
