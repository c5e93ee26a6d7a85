//go:build unix

package itest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// party is one of the three that delay tasks and run them.
type party string

const (
	goParty     party = "go"
	pythonParty party = "godelayed" // our Python package
	keakonParty party = "keakon"    // the PyPI package delayed
)

var parties = []party{goParty, pythonParty, keakonParty}

// scenario is something that a task lives through.
type scenario struct {
	name   string
	run    func(t *testing.T, p *pair)
	keakon bool // keakon's package can take part
}

// scenarios run in this order. The last one kills the worker.
var scenarios = []scenario{
	{"plain", plainScenario, true},
	{"arguments", argumentsScenario, true},
	{"retry", retryScenario, true},
	{"scheduled", scheduledScenario, false},
	{"unique", uniqueScenario, false},
	{"result", resultScenario, false},
	{"cancel", cancelScenario, false},
	{"killed", killedScenario, true},
}

// pair is a producer and a worker on a queue.
type pair struct {
	t                *testing.T // of the pair, beyond those of its scenarios
	server           *redistest.Server
	queue            string
	producer, worker party
	produce          producer
	work             *matrixWorker
	ledger           pyLedger
}

// plain reports whether the pair needs messages that keakon's package reads or writes.
func (p *pair) plain() bool { return p.producer == keakonParty || p.worker == keakonParty }

// can reports whether both know what a scenario is about.
func (p *pair) can(s scenario) bool { return s.keakon || !p.plain() }

// matrixPatience bounds what a worker may need for anything here.
const matrixPatience = time.Minute

// TestMatrix has each party delay tasks for each, through all that both know.
func TestMatrix(t *testing.T) {
	together(t)
	for _, from := range parties {
		for _, to := range parties {
			t.Run(string(from)+"-to-"+string(to), func(t *testing.T) {
				t.Parallel() // they mostly wait
				server := redistest.Shared(t)
				p := &pair{
					t: t, server: server, queue: redistest.Name(t), producer: from, worker: to,
					ledger: newPyLedger(t),
				}
				p.produce = newProducer(t, p)
				p.work = startMatrixWorker(p.t, p)
				for _, s := range scenarios {
					if p.can(s) {
						t.Run(s.name, func(t *testing.T) {
							s.run(t, p)
							p.settled(t)
						})
					}
				}
				p.work.stop(t)
				waitFor(t, "the killed worker to be forgotten", func() bool {
					return len(keysLike(t, p.server.Dial(t), p.queue+"_worker*")) == 0
				})
				redistest.CheckInvariants(t, server.Dial(t), p.queue, redistest.Invariants{Idle: to != keakonParty})
			})
		}
	}
}

// settled waits until all tasks are done and sees that every key fits the others.
func (p *pair) settled(t *testing.T) {
	t.Helper()
	conn := p.server.Dial(t)
	waitFor(t, "the queue to be empty", func() bool {
		waiting, err := redis.Int(conn.Do("EXISTS", p.queue, p.queue+"_scheduled", p.queue+"_retry", p.queue+"_parked",
			p.queue+"_archived"))
		if err != nil {
			t.Fatal(err)
		}
		return len(keysLike(t, conn, p.queue+"_processing*"))+waiting == 0
	})
	// keakon's workers leave a notification now and then, and take one too many.
	slack := 0
	if p.plain() {
		slack = 100
	}
	redistest.CheckInvariants(t, conn, p.queue, redistest.Invariants{MoreNoti: slack, LessNoti: slack})
}

func keysLike(t *testing.T, conn redis.Conn, pattern string) []string {
	t.Helper()
	keys, err := redis.Strings(conn.Do("KEYS", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestMatrixIsDocumented compares the table of docs/INTEROP.md with the tests.
func TestMatrixIsDocumented(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "docs", "INTEROP.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, from := range parties {
		for _, to := range parties {
			p := &pair{producer: from, worker: to}
			for _, s := range scenarios {
				if p.can(s) {
					want = append(want, "TestMatrix/"+string(from)+"-to-"+string(to)+"/"+s.name)
				}
			}
		}
	}
	var got []string
	for _, field := range strings.FieldsFunc(string(raw),
		func(r rune) bool { return strings.ContainsRune(" \t\n|`", r) }) {
		if strings.HasPrefix(field, "TestMatrix/") {
			got = append(got, field)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/INTEROP.md names %q, expected %q", got, want)
	}
}
