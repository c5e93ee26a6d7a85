package beat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/state"
)

const (
	// shownRun is how long a task must have run before the status lists it.
	shownRun = time.Second
	// maxShown bounds the running tasks that the status lists, for each queue. The longest ones come first.
	maxShown = 100
)

// Status describes what a worker does.
type Status struct {
	All    catalog.Status // what does not change
	Worker phaser
	Exec   *exec.Executors
	memory PublishedMemory
}

// phaser is a worker that knows its phase.
type phaser interface{ Phase() state.Worker }

// ofWorker returns what holds for all lanes. It only changes when there is something to publish, so a worker that is
// idle or runs short tasks writes its status once, and again when its memory has changed. Times are those of this
// process's clock.
func (s *Status) ofWorker(now time.Time) catalog.Status {
	all := s.All
	all.State, all.Memory = s.Worker.Phase().String(), s.memory.Update(MemoryUsed(), now)
	return all
}

// ofLane adds what the worker runs of a lane's tasks, and returns the status as JSON.
func (s *Status) ofLane(l *lane.Lane, now time.Time, out catalog.Status) []byte {
	for _, c := range s.Exec.Running() {
		if c.Lane == l && now.Sub(c.Started) >= shownRun {
			out.Running = append(out.Running, catalog.Running{
				Token: c.Token, ID: c.Msg.Meta.ID, Function: c.Msg.Path, Started: c.Started.UnixMilli(),
			})
		}
	}
	slices.SortFunc(out.Running, func(a, b catalog.Running) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.Token, b.Token))
	})
	if out.More = max(len(out.Running)-maxShown, 0); out.More > 0 {
		out.Running = out.Running[:maxShown]
	}
	text, _ := json.Marshal(out) //nolint:errchkjson // it has no value that cannot be written
	return text
}

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
	return RuntimeMemory()
}

// RuntimeMemory returns the bytes that the Go runtime has from the system and has not returned.
func RuntimeMemory() int64 {
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

// PublishedMemory is the memory of the process as a worker publishes it. The zero value has published nothing.
type PublishedMemory struct {
	mu    sync.Mutex
	bytes int64
	at    time.Time
}

// Update returns the memory to publish: used if that differs enough, else what was published before.
func (m *PublishedMemory) Update(used int64, now time.Time) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	change := max(used-m.bytes, m.bytes-used)
	if m.at.IsZero() || change >= max(memoryChange, m.bytes/memoryPart) && now.Sub(m.at) >= memoryRest {
		m.bytes, m.at = used, now
	}
	return m.bytes
}
