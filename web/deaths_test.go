package web_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/web"
)

// Tasks that workers die with are shown: first as suspects, and when they have died alone three times, as archived.
func TestDeathsAreShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Viewer, "deaths"), "No task that waits or runs has died", "No task is archived because")
	_, err := b.q.With(delayed.TaskID("doomed")).Delay(dies, 1)
	b.Must(err)
	sweeper, err := delayed.NewSweeper(b.rdb, delayed.SweeperConfig{
		Queues: []string{queueName}, Interval: 100 * time.Millisecond, HeartbeatLife: 500 * time.Millisecond,
		Logger: b.log.Logger(),
	})
	b.Must(err)
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() { done <- sweeper.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := redistest.Await(b.Bench, "the sweeper's end", done); err != nil {
			t.Error(err)
		}
	})
	die := func() {
		b.T.Helper()
		child := exec.Command(os.Args[0], "-test.run=TestHelperWorkerThatDies")
		child.Env = append(os.Environ(), "DELAYED_WEB_DIES="+b.Server.URL()+" "+strings.TrimSuffix(b.Name, queueName))
		b.Must(child.Start())
		_ = child.Wait() // it kills itself
	}
	die()
	b.Until("its task is a suspect", func() bool {
		return strings.Contains(b.get(web.Viewer, "deaths"), `data-name="Deaths">1<`)
	})
	b.has(b.get(web.Viewer, "deaths"), "task?id=doomed&amp;queue=mail", `class="state pending"`, "video.Dies",
		"It runs like any other task")
	die()
	b.Until("two died with it", func() bool {
		return strings.Contains(b.get(web.Viewer, "deaths"), `data-name="Deaths">2<`)
	})
	b.has(b.get(web.Viewer, "deaths"), "at most a quarter")
	die()
	b.Until("three died with it", func() bool {
		return strings.Contains(b.get(web.Viewer, "deaths"), `data-name="Deaths">3<`)
	})
	b.has(b.get(web.Viewer, "deaths"), "is archived once it has died alone 3 times")
	// A worker may die before Redis knows that the task was alone; such a death does not count as one alone.
	archived := false
	for n := 4; !archived; n++ {
		if n > 8 {
			t.Fatal("the task is not archived after eight deaths")
		}
		die()
		b.Until("it is archived, or has one death more", func() bool {
			page := b.get(web.Viewer, "deaths")
			archived = strings.Contains(page, "Nothing, until somebody")
			return archived || strings.Contains(page, fmt.Sprintf(`data-name="Deaths">%d<`, n))
		})
	}
	b.has(b.get(web.Viewer, "deaths?queue=mail"), "No task that waits or runs has died",
		`data-name="Last worker"><span class="id">`, "task?id=doomed&amp;queue=mail",
		"tasks?queue=mail&amp;reason=deaths&amp;state=archived")
}
