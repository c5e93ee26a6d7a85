//go:build linux

package itest_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
)

// maxLogLine bounds a line of a worker's log, in bytes.
const maxLogLine = 32 << 10

// TestLogsOfHostileTexts has workers find hostile texts, also of 1 MiB, wherever strangers may have written them: in
// tasks that wait, are due, gathered, or were claimed by a worker that has died, and in its id. None is in the log as
// it is.
func TestLogsOfHostileTexts(t *testing.T) {
	together(t)
	for _, language := range []string{"Go", "Python"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			conn := server.Dial(t)
			queue := redistest.Name(t)
			do := redistest.DoOn(conn)
			redistest.FillHostile(do, "", queue)
			do("HDEL", queue+"_control", "paused")
			var worker *childproc.Process
			if language == "Go" {
				worker = matrixRole.Start(t, matrixSetup{URL: server.URL(), Queue: queue, Ledger: t.TempDir()})
			} else {
				worker = startPython(t, []string{"DELAYED_LEDGER=" + t.TempDir()}, "matrix_worker.py", "--url",
					server.URL(), "--queue", queue)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the log begins with %.5000q", worker.Output())
				}
			})
			messages := redistest.HostileMessages()
			for i, message := range messages {
				do("RPUSH", queue, message)
				do("RPUSH", queue+"_noti", "1")
				id := redistest.HostileTexts[i/(len(messages)/2)] + string(rune('a'+i))
				do("HSET", queue+"_tasks", id, message)
				do("ZADD", queue+"_retry", 1000, id)
				do("HSET", queue+"_processing:dead"+redistest.HostileTexts[i/(len(messages)/2)], id, message)
			}
			for _, text := range redistest.HostileTexts {
				do("SADD", queue+"_workers", "dead"+text)
				for _, message := range messages {
					do("RPUSH", queue+"_group:due"+text, message)
				}
				do("ZADD", queue+"_groups", 1000, "due"+text)
			}
			waitForAtMost(t, time.Minute, "nothing is left but what is kept", func() bool {
				dead := queue + "_processing:dead" + redistest.HostileText
				for cmd, key := range map[string]string{"LLEN": queue, "HLEN": dead} {
					if n, err := redis.Int(conn.Do(cmd, key)); err != nil || n > 0 {
						return false
					}
				}
				n, err := redis.Int(conn.Do("ZCOUNT", queue+"_retry", 0, 1000))
				return err == nil && n == 0
			})
			if err := worker.Stop(20 * time.Second); err != nil {
				t.Error(err)
			}
			for line := range strings.Lines(worker.Output()) {
				if len(line) > maxLogLine {
					t.Errorf("a line of %d bytes: %.300q", len(line), line)
				}
				for _, r := range strings.TrimSuffix(line, "\n") {
					if !unicode.IsPrint(r) {
						t.Errorf("a line with %U: %.300q", r, line)
						break
					}
				}
				if strings.HasPrefix(line, "full:") {
					t.Errorf("a text looks like a line: %.300q", line)
				}
			}
			if !strings.Contains(worker.Output(), "mailbox") {
				t.Errorf("the log tells of no hostile text: %.3000s", worker.Output())
			}
		})
	}
}
