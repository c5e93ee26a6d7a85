//go:build linux

package itest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/procs"
	"github.com/godelayed/delayed/state"
)

// maxGrowth is how many bytes the resident memory of a process may grow because of messages that are too large, however
// many there are.
const maxGrowth = 32 << 20

// largeSizes are the sizes of messages that no worker reads: 40 MiB in all, 500 MiB for make limits.
func largeSizes() (sizes []int) {
	huge, n := 17<<20, 4
	if limits.On() {
		huge, n = 125<<20, 166
	}
	sizes = []int{huge, huge}
	for range n {
		sizes = append(sizes, 3<<19)
	}
	return sizes
}

// largeWays are scripts that put one message of ARGV[2] bytes, number ARGV[1], where workers and sweepers find it.
// KEYS[1] is the queue.
var largeWays = []struct{ name, fill string }{
	{"claim", `redis.call('RPUSH', KEYS[1], m) redis.call('RPUSH', KEYS[1] .. '_noti', '1')`},
	{"sweep", `redis.call('HSET', KEYS[1] .. '_processing:dead', '1-' .. ARGV[1], m)
		redis.call('SADD', KEYS[1] .. '_workers', 'dead')`},
	{"sweep of legacy workers", `redis.call('HSET', KEYS[1] .. '_processing', 'dead' .. ARGV[1], m)`},
	{"scheduled", `redis.call('HSET', KEYS[1] .. '_tasks', 't' .. ARGV[1], m)
		redis.call('ZADD', KEYS[1] .. '_scheduled', 1000, 't' .. ARGV[1])
		redis.call('RPUSH', KEYS[1] .. '_wake', '1')`},
	{"retry", `redis.call('HSET', KEYS[1] .. '_tasks', 't' .. ARGV[1], m)
		redis.call('ZADD', KEYS[1] .. '_retry', 1000, 't' .. ARGV[1])
		redis.call('RPUSH', KEYS[1] .. '_wake', '1')`},
	{"group", `redis.call('RPUSH', KEYS[1] .. '_group:g', m)
		redis.call('ZADD', KEYS[1] .. '_groups', 1000, 'g')
		redis.call('RPUSH', KEYS[1] .. '_wake', '1')`},
}

// TestLargeMessages: workers find messages that are too large for them, in every possible way. The messages stay in
// Redis: all are archived with reason and size, and the workers' memory does not grow.
func TestLargeMessages(t *testing.T) {
	together(t)
	for _, language := range []string{"Go", "Python"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			conn := server.Dial(t)
			queue := redistest.Name(t)
			var worker *childproc.Process
			if language == "Go" {
				worker = matrixRole.Start(t, matrixSetup{URL: server.URL(), Queue: queue, Ledger: t.TempDir()})
			} else {
				worker = startPython(t, []string{"DELAYED_LEDGER=" + t.TempDir()}, "matrix_worker.py", "--url",
					server.URL(), "--queue", queue)
			}
			waitFor(t, "the worker to be ready", func() bool {
				n, err := redis.Int(conn.Do("SCARD", queue+"_workers"))
				return err == nil && n == 1
			})
			sizes := largeSizes()
			for _, way := range largeWays {
				if language == "Python" && way.name == "group" {
					continue // these workers leave gathered calls to Go
				}
				before := memoryOf(t, worker.PID(), "VmRSS")
				fillLarge(t, conn, queue, way.fill, sizes)
				waitForAtMost(t, 3*time.Minute, way.name+": all to be archived", func() bool {
					n, err := redis.Int(conn.Do("ZCARD", queue+"_archived"))
					return err == nil && n == len(sizes)
				})
				grown := memoryOf(t, worker.PID(), "VmHWM") - before
				t.Logf("%s: %d MiB of messages, memory has grown by %.1f MiB", way.name, sumOf(sizes)>>20,
					float64(grown)/(1<<20))
				if grown >= maxGrowth {
					limits.Errorf(t, "%s: memory has grown by %d bytes, expected less than %d", way.name, grown,
						maxGrowth)
				}
				checkArchivedLarge(t, conn, queue, way.name, sizes)
				for _, suffix := range []string{"_archived", "_tasks", "_info"} {
					if _, err := conn.Do("DEL", queue+suffix); err != nil {
						t.Fatal(err)
					}
				}
			}
			if lines := strings.Count(worker.Output(), "archived"); lines > 50 {
				t.Errorf("%d log lines about %d messages", lines, len(sizes)*len(largeWays))
			}
			if err := worker.Stop(20 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
}

func sumOf(sizes []int) (sum int) {
	for _, n := range sizes {
		sum += n
	}
	return sum
}

// fillLarge makes Redis itself create the messages.
func fillLarge(t *testing.T, conn redis.Conn, queue, fill string, sizes []int) {
	t.Helper()
	script := redis.NewScript(1, "local m = string.rep('x', ARGV[2])\n"+fill)
	for i, n := range sizes {
		if _, err := script.Do(conn, queue, i, n); err != nil {
			t.Fatal(err)
		}
	}
}

// checkArchivedLarge checks that the archive holds whole messages, with their sizes and the reason.
func checkArchivedLarge(t *testing.T, conn redis.Conn, queue, way string, sizes []int) {
	t.Helper()
	infos, err := redis.StringMap(conn.Do("HGETALL", queue+"_info"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]int{}
	for _, n := range sizes {
		want[n]++
	}
	for id, info := range infos {
		size, err := redis.Int(conn.Do("HSTRLEN", queue+"_tasks", id))
		if err != nil {
			t.Fatal(err)
		}
		want[size]--
		if !strings.Contains(info, "too large") || !strings.Contains(info, strconv.Itoa(size)) {
			t.Errorf("%s: of a message of %d bytes is known %q: expected the reason and the size", way, size, info)
		}
	}
	for size, missing := range want {
		if missing != 0 {
			t.Errorf("%s: %d messages of %d bytes are missing in the archive", way, missing, size)
		}
	}
}

// memoryOf reads a line of /proc/<pid>/status, in bytes. Reading VmRSS also resets VmHWM, the highest value since.
func memoryOf(t testing.TB, pid int, name string) int {
	t.Helper()
	n, err := readMemory(strconv.Itoa(pid), name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func readMemory(pid, name string) (int, error) {
	dir := "/proc/" + pid
	if name == "VmRSS" {
		if err := os.WriteFile(dir+"/clear_refs", []byte("5"), 0); err != nil {
			return 0, err
		}
	}
	text, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			var kib int
			_, err := fmt.Sscanf(string(rest), "%d kB", &kib)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in %s/status", name, dir)
}

// inspectSetup configures a process that asks about tasks that are too large.
type inspectSetup struct {
	URL, Queue string
	Tasks      int
}

var inspectRole = procs.Define("inspector of large tasks", func(ctx context.Context, s inspectSetup) error {
	rdb, err := delayed.Dial(s.URL)
	if err != nil {
		return err
	}
	defer rdb.Close()
	q := delayed.NewQueue(s.Queue, rdb)
	if _, err := q.Ref("nobody").State(ctx); err != nil {
		return err
	}
	before, err := readMemory("self", "VmRSS")
	if err != nil {
		return err
	}
	page, found, err := q.Archived(ctx, 0, 1000)
	if err != nil || len(page) != s.Tasks || found != s.Tasks {
		return fmt.Errorf("%d of %d archived tasks, %w, expected %d", len(page), found, err, s.Tasks)
	}
	for _, task := range page {
		ref := q.Ref(task.ID)
		info, err := ref.Info(ctx)
		if err != nil || info.State != state.Archived || info.Reason != "too large" {
			return fmt.Errorf("%+v, %w", info, err)
		}
		if err := ref.RunAgain(ctx); err == nil || errors.Is(err, delayed.ErrNotArchived) {
			return fmt.Errorf("RunAgain: %w, expected an error about the size", err)
		}
	}
	if n, err := q.RunArchivedAgain(ctx, nil); n != 0 || err != nil {
		return fmt.Errorf("%d tasks run again, %w", n, err)
	}
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		return err
	}
	if groups, err := ins.Groups(ctx, q.Name()); err != nil || len(groups) != 1 || groups[0].Size != s.Tasks {
		return fmt.Errorf("groups %+v, %w", groups, err)
	}
	if where, err := q.Ref("nobody").State(ctx); err != nil || where != state.Unknown {
		return fmt.Errorf("state %v, %w", where, err)
	}
	for i := range s.Tasks {
		if err := q.Ref("s" + strconv.Itoa(i)).Cancel(ctx); err != nil {
			return err
		}
	}
	if n, err := q.DeleteArchived(ctx, nil); n != s.Tasks || err != nil {
		return fmt.Errorf("%d tasks deleted, %w", n, err)
	}
	after, err := readMemory("self", "VmHWM")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "grown %d\n", after-before)
	return nil
})

// TestLargeMessagesAreNotRead lists, searches, cancels, deletes and tries to run again tasks that are too large. None
// of these reads a whole message.
func TestLargeMessagesAreNotRead(t *testing.T) {
	together(t)
	const fill = `redis.call('HSET', KEYS[1] .. '_tasks', 't' .. ARGV[1], m, 's' .. ARGV[1], m)
redis.call('HSET', KEYS[1] .. '_info', 't' .. ARGV[1], m)
redis.call('ZADD', KEYS[1] .. '_archived', 4e12, 't' .. ARGV[1])
redis.call('ZADD', KEYS[1] .. '_scheduled', 4e12, 's' .. ARGV[1])
redis.call('RPUSH', KEYS[1] .. '_group:g', m) redis.call('ZADD', KEYS[1] .. '_groups', 4e12, 'g')`
	sizes := largeSizes()
	for _, language := range []string{"Go", "Python"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			queue := redistest.Name(t)
			conn := server.Dial(t)
			fillLarge(t, conn, queue, fill, sizes)
			var p *childproc.Process
			if language == "Go" {
				p = inspectRole.Start(t, inspectSetup{server.URL(), queue, len(sizes)})
			} else {
				var err error
				p, err = childproc.Start(pythonCommand(t, nil, "inspect_large.py", "--url", server.URL(), "--queue",
					queue, "--tasks", strconv.Itoa(len(sizes))))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(p.Kill)
			}
			select {
			case <-p.Done():
			case <-time.After(pythonLimit):
			}
			var grown int
			if _, err := fmt.Sscanf(p.Output(), "grown %d", &grown); err != nil {
				t.Fatalf("%s: %s", p.Describe(), p.Output())
			}
			t.Logf("%d MiB of messages, memory has grown by %.1f MiB", sumOf(sizes)>>20, float64(grown)/(1<<20))
			if grown >= maxGrowth {
				limits.Errorf(t, "memory has grown by %d bytes, expected less than %d", grown, maxGrowth)
			}
		})
	}
}
