package engine

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"
)

// MemoryUsed returns the memory of the process in bytes: what is resident, where the system reports it (Linux), else
// what the Go runtime has from the system.
func MemoryUsed() int64 {
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(statm); len(fields) > 1 {
			if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	return runtimeMemory()
}

// runtimeMemory returns the bytes that the Go runtime has from the system and has not returned.
func runtimeMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			return 0
		}
	}
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64()) //nolint:gosec // far below 2⁶³
}

const (
	// memoryRest, memoryChange and memoryPart say which change of the memory is published: after so long, of so many
	// bytes, and of such a part of it.
	memoryRest   = 30 * time.Second
	memoryChange = 4 << 20
	memoryPart   = 8
)

// publishedMemory is the memory of the process as a worker publishes it. The zero value has published nothing.
type publishedMemory struct {
	mu    sync.Mutex
	bytes int64
	at    time.Time
}

// update returns the memory to publish: used if that differs enough, else what was published before.
func (m *publishedMemory) update(used int64, now time.Time) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	change := max(used-m.bytes, m.bytes-used)
	if m.at.IsZero() || change >= max(memoryChange, m.bytes/memoryPart) && now.Sub(m.at) >= memoryRest {
		m.bytes, m.at = used, now
	}
	return m.bytes
}
