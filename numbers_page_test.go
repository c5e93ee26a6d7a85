package delayed_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// TestNumbersOfThePages compares the numbers in pages and documentation with the constants in the code.
func TestNumbersOfThePages(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		page, says string
		found      any
		want       any
	}{
		{
			"SECURITY.md", "1 MiB, 65,536 elements, 32 levels, paths of 512 bytes", wire.Default,
			wire.Limits{Bytes: 1 << 20, Elems: 65_536, Depth: 32, Path: 512},
		},
		{"SECURITY.md", "more than 1 MiB and 4 KiB", wire.WorkerLimits.Bytes, 1<<20 + 4<<10},
		{"SECURITY.md", "ids and names to 1 KiB", loop.MaxLogField, 1 << 10},
		{"SECURITY.md", "one log line a second", loop.LineInterval, time.Second},
		{"docs/RELIABILITY.md", "died **alone** three times", lifecycle.MaxDeaths, 3},
		{"docs/RELIABILITY.md", "Deaths lapse 72 hours", lifecycle.DeathLife, 3 * day},
		{"docs/DEPLOYING.md", "up to seven days", lifecycle.ParkedLife, 7 * day},
		{"docs/PERIODIC.md", "the lock expires after 24 h", schedule.OverlapLife, day},
		{"docs/PERIODIC.md", "At least 1 s", schedule.ShortestEvery, time.Second},
		{"worker_config.go", "90 days", lifecycle.ArchivedLife, 90 * day},
		{"worker_config.go", "10,000", lifecycle.MaxArchived, 10_000},
		{"options.go", "at most 256 bytes", wire.MaxTaskID, 256},
		{"options.go", "7 days", redisstore.LockLife, 7 * day},
		{"options.go", "at most 64 headers", wire.MaxHeaders, 64},
		{"options.go", "8,192 bytes", wire.MaxHeaderBytes, 8_192},
		{"options.go", "64 of them", wire.MaxRetryDelays, 64},
		{"group.go", "Defaults to a minute", group.DefaultGrace, time.Minute},
		{"group.go", "Defaults to 1,000", group.DefaultGroupSize, 1_000},
		{"group.go", "never more than 5,000", group.MaxGroupSize, 5_000},
		{"queue.go", "1,000 or 1 MiB at a time", redisstore.MaxBatchTasks, 1_000},
		{"queue.go", "1,000 or 1 MiB at a time", redisstore.MaxCallBytes, 1 << 20},
		{"queue.go", "at most 500 tasks with In, At or Group", redisstore.MaxFiled, 500},
		{"queue.go", "at most 100 tasks", redisstore.MaxEnlisted, 100},
	} {
		page, err := os.ReadFile(c.page)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "//", "")),
			" "); !strings.Contains(text,
			c.says) {
			t.Errorf("%s does not say %q any more", c.page, c.says)
		}
		if c.found != c.want {
			t.Errorf("%s says %q, found %v", c.page, c.says, c.found)
		}
	}
}
