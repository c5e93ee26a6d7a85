package redisstore

import (
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestSemaphoreOfSeveralLeases takes places with a long lease and a short one, in both orders. Redis keeps the key for
// as long as a place may be held.
func TestSemaphoreOfSeveralLeases(t *testing.T) {
	t.Parallel()
	for _, leases := range [][2]time.Duration{{time.Hour, time.Minute}, {time.Minute, time.Hour}} {
		b := redistest.NewBench(t, redistest.Shared(t))
		s := NewSemaphore(dialled(t, b.Server.URL()), "", b.Name)
		for i, holder := range []string{"a", "b"} {
			if ok, err := s.Acquire(bg, holder, 2, leases[i]); !ok || err != nil {
				t.Fatalf("acquire: %v, %v", ok, err)
			}
		}
		life, _ := b.Do("PTTL", s.key).(int64)
		if life := time.Duration(life) * time.Millisecond; life <= 59*time.Minute || life > time.Hour {
			t.Errorf("leases of %v: the key lives for %v, expected an hour", leases, life)
		}
		b.Do("DEL", s.key)
	}
}
