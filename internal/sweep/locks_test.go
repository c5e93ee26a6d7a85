package sweep

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// TestLocksOfTasksParkedTooLong archives parked tasks, which frees their locks and ids. Their messages are so large
// that the sweeper needs several calls to read them.
func TestLocksOfTasksParkedTooLong(t *testing.T) {
	b := newBench(t)
	parked, tasks, locks := redistest.Zset{}, redistest.Hash{}, redistest.Hash{"k:other": "4000000000000 other"}
	for i, size := range []int{1, 1000 << 10, 1000 << 10, 1000 << 10, 1000 << 10, 1000 << 10, 1} {
		id := fmt.Sprint("x", i)
		m := wire.Message{Kind: wire.GoExtended, Path: "a.F", Payload: blob(size)}
		m.Meta.ID, m.Meta.Extra = id, &wire.Extra{Lock: "k:" + id, LockLife: 1000}
		tasks[id], parked[id] = string(m.Append(nil)), 1000
		locks["k:"+id], locks["#"+id] = "4000000000000 "+id, "4000000000000 "+id
	}
	redistest.Seed(t, b.Conn, b.Name, redistest.State{"_parked": parked, "_tasks": tasks, "_locks": locks})
	g := b.group(time.Minute, time.Minute)
	b.Must(g.trim(t.Context(), b.store))
	if left := b.Hash("_locks"); b.Size("_archived") != len(tasks) || len(left) != 1 || left["k:other"] == "" {
		t.Errorf("%d tasks are archived, and these locks are left: %v", b.Size("_archived"), left)
	}
}

// blob returns a MessagePack binary of n zero bytes.
func blob(n int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0xc6}, uint32(n)), make([]byte, n)...)
}

// TestExpiredLocksAmongMany drops expired locks between many that have not expired, some in each pass.
func TestExpiredLocksAmongMany(t *testing.T) {
	b := newBench(t)
	const held, expired = 2*lapsePages*redisstore.LapsePage + 100, 50
	b.Do("EVAL", `for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], 'k:' .. i, '4000000000000 x' .. i) end
		for i = 1, ARGV[2] do redis.call('HSET', KEYS[1], 'k:over' .. i, '1000 y' .. i) end`, 1, b.Name+"_locks",
		held, expired)
	g := b.group(time.Minute, time.Minute)
	for pass := 1; b.Size("_locks") > held; pass++ {
		if pass > 4 {
			t.Fatalf("%d locks are left after %d passes, expected %d", b.Size("_locks"), pass, held)
		}
		b.Must(g.trim(t.Context(), b.store))
		if pass == 1 && g.lapsed[b.store] == "0" {
			t.Error("one pass has looked at all locks")
		}
	}
	if n := b.Int("EVAL", `return #redis.call('HSCAN', KEYS[1], 0, 'MATCH', 'k:over*', 'COUNT', 100000)[2]`, 1,
		b.Name+"_locks"); n != 0 || b.Size("_locks") != held {
		t.Errorf("%d locks are left, %d texts of expired ones, expected %d", b.Size("_locks"), n, held)
	}
}

// TestAllLocksExpireAtOnce drops all of them in one pass.
func TestAllLocksExpireAtOnce(t *testing.T) {
	b := newBench(t)
	b.Do("EVAL", `for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], 'k:over' .. i, '1000 y' .. i) end`, 1,
		b.Name+"_locks", 2*lapsePages*redisstore.LapsePage)
	b.Must(b.group(time.Minute, time.Minute).trim(t.Context(), b.store))
	if n := b.Size("_locks"); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}
