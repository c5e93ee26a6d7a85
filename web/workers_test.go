package web_test

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// The page of workers says what they are, what they run, and leads to each of them.
func TestWorkersAreShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Viewer, "workers"), "No workers", "delayed.NewWorker")
	running, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	block := delayed.Func(func(int) { running <- struct{}{}; <-release }, delayed.Name("example.com/video.Block"))
	_, err := b.q.With(delayed.TaskID("long")).Delay(block, 1)
	b.Must(err)
	w, _ := b.work(delayed.WorkerConfig{Queues: delayed.Weighted{queueName: 6, "other": 1}}, block)
	redistest.Await(b.Bench, "the task", running)
	b.Until("it says what runs", func() bool {
		return strings.Contains(b.get(web.Viewer, "workers"), "video.Block")
	})
	host, err := os.Hostname()
	b.Must(err)
	page := b.get(web.Viewer, "workers")
	if !regexp.MustCompile(`data-name="Memory">\d[\d.]* [KMG]iB<`).MatchString(page) {
		t.Error("the page has no memory of the worker")
	}
	b.has(page, host+":", "worker?id="+w.ID(), `class="state running"`, "mail=6, other=1 (weighted)", "1 of 2",
		"task?id=long&amp;queue=mail")
	b.hasNot(page, "<form class=\"inline\"")
	b.Must(b.q.SetWeight(bg, 9))
	b.Until("its weight is shown", func() bool {
		return strings.Contains(b.get(web.Viewer, "worker?id="+w.ID()), "weight 9 for all workers")
	})
	b.has(b.get(web.Viewer, "worker?id="+w.ID()), "task?id=long&amp;queue=mail", "since", "video.Block(int)",
		"tasks?queue=mail&amp;state=active&amp;worker="+w.ID(), "queue?name=other")
	b.has(b.get(web.Viewer, "workers?queue=other"), "worker?id="+w.ID())
	if a := b.ask(web.Viewer, http.MethodGet, "worker?id=nobody", nil); a.Status != http.StatusNotFound {
		t.Errorf("an unknown worker: %d", a.Status)
	}
	if a := b.ask(web.Viewer, http.MethodGet, "workers?queue=none", nil); a.Status != http.StatusNotFound {
		t.Errorf("an unknown queue: %d", a.Status)
	}
}

// Operators pause, resume and quiet workers, and admins stop them. What they did is in the audit log with their names.
func TestOrdersOfWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, _ := b.work(delayed.WorkerConfig{}, spills)
	address := "worker?id=" + w.ID()
	for _, action := range []string{"pause", "resume", "quiet", "stop"} {
		b.refused(web.Viewer, address, action, "id", w.ID())
	}
	b.refused(web.Operator, address, "stop", "id", w.ID())
	b.has(b.get(web.Operator, address), ">Pause<", ">Quiet<")
	b.hasNot(b.get(web.Operator, address), ">Stop<", ">Resume<")
	for _, step := range []struct {
		role   web.Role
		action string
		then   state.Worker
	}{
		{web.Operator, "pause", state.Paused},
		{web.Operator, "resume", state.Running},
		{web.Operator, "quiet", state.Quiet},
		{web.Admin, "stop", state.Stopped},
	} {
		b.has(b.do(step.role, address, step.action, "id", w.ID()), `<p class="notice"`, "Worker "+w.ID())
		b.Until("the worker is "+step.then.String(), func() bool { return w.Status().State == step.then })
		if step.then < state.Stopped {
			b.Until("the page says so", func() bool {
				return strings.Contains(b.get(web.Viewer, address), `class="state `+step.then.String()+`"`)
			})
		}
	}
	records, err := b.ins.Audit(bg, 0, 10)
	b.Must(err)
	if len(records) != 4 || records[0].Actor != "admin" || records[0].Action != "stop worker" ||
		records[3].Actor != "operator" || records[3].Target != w.ID() {
		t.Errorf("the audit log: %+v", records)
	}
	b.has(b.do(web.Admin, "workers", "pause", "id", "nobody"), `class="notice bad"`, "no living worker")
	read := newBench(t, func(c *web.Config) { c.ReadOnly = true })
	read.refused(web.Admin, "workers", "pause", "id", "nobody")
}

// A worker that has died is shown as dead, with what becomes of its tasks.
func TestDeadWorkersAreShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	child := exec.Command(os.Args[0], "-test.run=TestHelperWorkerThatDies")
	child.Env = append(os.Environ(), "DELAYED_WEB_DIES="+b.Server.URL()+" "+strings.TrimSuffix(b.Name, queueName))
	_, err := b.q.With(delayed.TaskID("doomed")).Delay(dies, 1)
	b.Must(err)
	b.Must(child.Start())
	_ = child.Wait() // it kills itself
	b.Until("it is shown as dead", func() bool {
		return strings.Contains(b.get(web.Viewer, "workers"), "dead on mail")
	})
	b.has(b.get(web.Viewer, "workers"), "It holds 1 task", "No other worker of mail is alive", "delayed.Sweeper")
	b.hasNot(b.get(web.Admin, "workers"), ">Pause<")
	b.work(delayed.WorkerConfig{}, spills)
	b.Until("its task is given back", func() bool {
		return !strings.Contains(b.get(web.Viewer, "workers"), "dead on mail")
	})
}

// dies ends its process.
var dies = delayed.Func(func(int) { os.Exit(137) }, delayed.Name("example.com/video.Dies"))

// TestHelperWorkerThatDies is a worker in a process of its own, if it has an address.
func TestHelperWorkerThatDies(t *testing.T) {
	address, prefix, given := strings.Cut(os.Getenv("DELAYED_WEB_DIES"), " ")
	if !given {
		return
	}
	rdb, err := delayed.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb.WithPrefix(prefix), delayed.WorkerConfig{
		Queues: delayed.Strict{queueName}, HeartbeatLife: 500 * time.Millisecond,
	})
	if err == nil {
		err = w.Register(dies)
	}
	if err == nil {
		err = w.Run(t.Context())
	}
	t.Fatal(err)
}
