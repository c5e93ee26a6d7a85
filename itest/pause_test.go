//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
)

// TestPause stops worker processes (SIGSTOP) with tasks in hand until their heartbeats have expired and other workers
// have got the tasks, and then lets them continue (SIGCONT): they must not end tasks that are no longer theirs, and
// must notice at once what they have lost.
func TestPause(t *testing.T) {
	together(t)
	const (
		processes = 12
		atOnce    = 5
		wakeLimit = time.Second
	)
	pauses := inChaos(10, 60)
	server := redistest.Start(t)
	f := newFleet(t, server, workerSetup{
		Queue: redistest.Name(t), Concurrency: 4, Prefetch: 4, Life: time.Second, Sweep: 300 * time.Millisecond,
	})
	var members []*member
	for range processes {
		members = append(members, f.start())
	}
	producing, stopProducing := context.WithCancel(t.Context())
	var producer sync.WaitGroup
	defer producer.Wait()
	defer stopProducing()
	tasks := 0
	producer.Go(func() { tasks = keepPending(producing, t, server, f.setup.Queue, 2*processes) })

	p := newPauser(f, members)
	var wg sync.WaitGroup
	for i := range atOnce {
		wg.Go(func() {
			for range (pauses + i) / atOnce {
				p.pause()
			}
		})
	}
	wg.Wait()
	stopProducing()
	producer.Wait()
	f.awaitDrained(2*time.Minute, members)
	f.stop(members...)
	redistest.CheckInvariants(t, server.Dial(t), f.setup.Queue, redistest.Invariants{Idle: true})
	log := f.log()
	for task, acks := range log.Of(ledger.Acked).Repeated() {
		t.Errorf("task %s was completed more than once: %v", task, acks)
	}
	if n := len(log.Of(ledger.Acked).ByTask()); n != tasks {
		t.Errorf("%d of %d tasks were completed", n, tasks)
	}
	for counter, want := range map[string]int{"processed": tasks, "archived": 0, "failed": 0} {
		if n := count(t, server, f.setup.Queue, counter); n != want {
			t.Errorf("Redis counted %d tasks as %s, expected %d", n, counter, want)
		}
	}
	p.check(log, wakeLimit)
}

// keepPending enqueues tasks, some of them long, whenever fewer than n are pending, and returns how many it enqueued.
func keepPending(ctx context.Context, t *testing.T, server *redistest.Server, queue string, n int) (tasks int) {
	t.Helper()
	q := delayed.NewQueue(queue, handle(t, server))
	// a canceled call may have enqueued its task, which would not be counted
	whole := context.WithoutCancel(ctx)
	for {
		length, err := q.Len(ctx)
		for ; err == nil && length < n; length++ {
			switch tasks % 3 {
			case 0: // longer than any pause, so that the test can cancel it
				_, err = q.DelayContext(whole, workTask, key(tasks), 6000+rand.IntN(1000))
			case 1:
				_, err = q.DelayContext(whole, deafTask, key(tasks), 200+rand.IntN(1000))
			default:
				_, err = q.DelayContext(whole, workTask, key(tasks), 200+rand.IntN(1000))
			}
			if err == nil {
				tasks++
			}
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("enqueueing: %v", err)
			return tasks
		}
		select {
		case <-ctx.Done():
			return tasks
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// pauser stops workers and lets them continue, and remembers what they had in hand. Several goroutines use one.
type pauser struct {
	*fleet
	mu     sync.Mutex // protects the following fields
	free   []*member
	deaths map[string]int // by task
	done   []pause
}

// pause is one stop of one worker.
type pause struct {
	worker    string
	stopped   time.Time
	continued time.Time
	// tasks by token that it held when it was stopped; Redis had taken all of them from it when it continued
	swept map[string]string
}

func newPauser(f *fleet, members []*member) *pauser {
	return &pauser{fleet: f, free: slices.Clone(members), deaths: map[string]int{}}
}

// pause stops one worker that holds a task, until Redis has taken all of its tasks, and gives it time to notice.
func (p *pauser) pause() {
	m, held := p.stopOne()
	stopped := time.Now()
	waitFor(p.t, "the tasks of a stopped worker to be swept", func() bool { return len(p.claims(m.id)) == 0 })
	if err := m.Resume(); err != nil {
		p.t.Errorf("worker %s: %v", m.id, err)
		return
	}
	done := pause{m.id, stopped, time.Now(), held}
	// Do not stop it again before it has had time to notice and to end what it then may.
	<-time.After(1500 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, done)
	p.free = append(p.free, m)
}

// stopOne stops a worker with tasks in hand and returns these.
func (p *pauser) stopOne() (stopped *member, held map[string]string) {
	waitFor(p.t, "a worker with tasks in hand", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, i := range rand.Perm(len(p.free)) {
			m := p.free[i]
			if len(p.claims(m.id)) == 0 {
				continue
			}
			if err := m.Pause(); err != nil {
				p.t.Errorf("worker %s: %v", m.id, err)
				continue
			}
			// By the time that Redis answers a second question, it has executed what the worker had sent before it was
			// stopped.
			p.claims(m.id)
			held = p.claims(m.id)
			if len(held) == 0 || !p.spare(held) {
				if err := m.Resume(); err != nil {
					p.t.Errorf("worker %s: %v", m.id, err)
				}
				continue
			}
			for _, task := range held {
				p.deaths[task]++
			}
			stopped = m
			p.free = slices.Delete(p.free, i, i+1)
			return true
		}
		return false
	})
	return stopped, held
}

// spare reports whether no task in hand would be archived for having been swept for the third time.
func (p *pauser) spare(held map[string]string) bool {
	for _, task := range held {
		if p.deaths[task] >= 2 {
			return false
		}
	}
	return true
}

// check compares what workers did after they continued with what they had lost.
func (p *pauser) check(log ledger.Log, wakeLimit time.Duration) {
	p.t.Helper()
	lost := 0
	for _, pause := range p.done {
		lost += len(pause.swept)
	}
	if n := count(p.t, p.server, p.setup.Queue, "swept"); n != lost {
		p.t.Errorf("%d tasks were swept, but the stopped workers held %d", n, lost)
	}
	byClaim := log.ByClaim()
	started, unstarted, afterwards, ended, refused := 0, 0, 0, 0, 0
	var late []time.Duration
	for _, pause := range p.done {
		for token, task := range pause.swept {
			events := byClaim[ledger.Claim(pause.worker, token)]
			if acked := events.Of(ledger.Acked); len(acked) > 0 {
				p.t.Errorf("worker %s was stopped at %v, lost claim %s of task %s, and yet its ack was accepted: %v",
					pause.worker, pause.stopped, token, task, events)
			}
			refused += len(events.Of(ledger.Refused, ledger.Unclear))
			if starts := events.Of(ledger.Start); len(starts) == 0 || starts[0].Time.After(pause.continued) {
				unstarted++
				if len(starts) > 0 {
					afterwards++
				}
				continue
			}
			started++
			canceled, over := events.Of(ledger.Canceled), events.Of(ledger.End)
			switch {
			case len(canceled) > 0:
				late = append(late, canceled[0].Time.Sub(pause.continued))
				if canceled[0].Detail != delayed.ErrLost.Error() {
					p.t.Errorf("task %s was canceled for another reason than a lost claim: %v", task, events)
				}
			case len(over) > 0:
				ended++
			default:
				p.t.Errorf("worker %s never ended task %s: %v", pause.worker, task, events)
			}
		}
	}
	if len(late) == 0 {
		p.t.Fatal("no task was canceled")
	}
	slices.Sort(late)
	p.t.Log(strings.Join([]string{
		fmt.Sprintf("%d pauses took %d tasks from their handlers", len(p.done), started),
		fmt.Sprintf("%d handlers were canceled with ErrLost, half of them within %v of waking, all within %v",
			len(late), late[len(late)/2], late[len(late)-1]),
		fmt.Sprintf("%d ended by themselves first; %d stale acks reached Redis, none was accepted", ended, refused),
		fmt.Sprintf("%d claims had not been started, %d of them were afterwards", unstarted, afterwards),
	}, "\n"))
	// A worker may be stopped just after it has checked its heartbeat and before the task records its start, but that
	// is rare.
	if 10*afterwards > unstarted {
		limits.Errorf(p.t, "%d of %d tasks were started after their claims had been lost", afterwards, unstarted)
	}
	if worst := late[len(late)-1]; worst > wakeLimit {
		limits.Errorf(p.t, "a context was canceled %v after its worker had gone on, expected at most %v", worst,
			wakeLimit)
	}
}
