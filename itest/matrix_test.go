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

// party is one of the three packages that delay tasks and run them.
type party string

const (
	goParty     party = "go"
	pythonParty party = "godelayed" // our Python package
	keakonParty party = "keakon"    // the PyPI package delayed
)

var parties = []party{goParty, pythonParty, keakonParty}

// scenario is one test for a pair of producer and worker.
type scenario struct {
	name   string
	run    func(t *testing.T, p *pair)
	keakon bool // whether keakon's package supports it
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

// plain reports whether the pair needs messages that keakon's package can read or write.
func (p *pair) plain() bool { return p.producer == keakonParty || p.worker == keakonParty }

// can reports whether both parties support a scenario.
func (p *pair) can(s scenario) bool { return s.keakon || !p.plain() }

// matrixPatience is how long a worker may take for anything here.
const matrixPatience = time.Minute

// TestMatrix: each party delays tasks for each party, with all features that both support.
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

// settled waits until all tasks are done and checks that the keys are consistent.
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
	// keakon's workers sometimes leave a notification, and sometimes take one too many.
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
	t.Parallel()
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
	got := documentedMatrix(string(raw))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/INTEROP.md has %q, expected %q", got, want)
	}
}

// documentedMatrix returns the names of the tests behind each "yes" of the table of docs/INTEROP.md.
func documentedMatrix(page string) []string {
	var names, head []string
	for line := range strings.Lines(page) {
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.ToLower(strings.TrimSpace(cell)))
		}
		if cells[0] == "producer" {
			head = cells
		}
		for i, cell := range cells {
			if cell == "yes" && i < len(head) {
				names = append(names, "TestMatrix/"+cells[0]+"-to-"+cells[1]+"/"+head[i])
			}
		}
	}
	return names
}
