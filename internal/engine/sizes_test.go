package engine

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

func sized(t *testing.T) (*bench, *redisstore.Store) {
	t.Helper()
	b := newBenchOn(t, redistest.Start(t))
	return b, redisstore.NewStore(b.rdb.loops, "", b.Name)
}

func TestMoveTakesNoMoreThanItsBytes(t *testing.T) {
	t.Parallel()
	b, s := sized(t)
	for i := range 40 {
		if err := s.Schedule(t.Context(), []redisstore.Envelope{bigMessage(i)}, 1, true); err != nil {
			t.Fatal(err)
		}
	}
	moved := 0
	b.Until("all are moved", func() bool {
		n, _, _, err := s.Move(t.Context(), redisstore.ShelfScheduled, redisstore.MoveBatch)
		if err != nil || n > largest {
			t.Fatalf("one call moved %d messages of a megabyte, %v", n, err)
		}
		moved += n
		return moved == 40
	})
}

func TestParkedTasksCostLittle(t *testing.T) {
	t.Parallel()
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
		w.PokeMovers()
		return b.Server.CommandStats(t)["hstrlen"] >= start+2*n
	})
	if got := sent() - before; got > n<<10*2 {
		t.Errorf("an idle worker read %d bytes to look at %d parked tasks", got, n)
	}
}
