// Package ledger records what happened to tasks, in files that survive the processes that write them, and answers
// questions about it. Every process writes a file of its own, one line and one system call for each event; tests read
// the files at the end.
package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what happened.
type Kind string

// The kinds. Handlers write Start and End around their work, and Canceled instead of End when the context ended first,
// with its cause as the detail. Acks come from the witness of a worker's connections and name worker and token.
const (
	Start     Kind = "start"
	End       Kind = "end"
	Canceled  Kind = "canceled"
	Acked     Kind = "acked"    // Redis answered that the claim existed
	Refused   Kind = "refused"  // Redis answered that the claim did not exist
	Unclear   Kind = "unclear"  // no answer to an ack
	Stopped   Kind = "stopped"  // the test stopped the worker with SIGSTOP
	Continued Kind = "continue" // and let it go on
)

// Event is one line of a ledger. Fields that do not apply are empty.
type Event struct {
	Time   time.Time // by the clock of the machine, in nanoseconds
	Kind   Kind
	Task   string // as the test names it
	Worker string
	Token  string
	Detail string // the rest of the line; may contain spaces
}

// String returns the event as it is in the file.
func (e Event) String() string {
	return fmt.Sprintf("%d %s %s %s %s %s", e.Time.UnixNano(), e.Kind, orDash(e.Task), orDash(e.Worker),
		orDash(e.Token), e.Detail)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Writer appends events to a file. It is safe for concurrent use.
type Writer struct {
	file *os.File
}

// suffix marks the files of a directory that are ledgers.
const suffix = ".ledger"

// Create opens the ledger of this process in a directory.
func Create(dir string) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(os.Getpid())+suffix), os.O_APPEND|os.O_CREATE|os.O_WRONLY,
		0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{f}, nil
}

// Write appends e with the current time. It panics when it cannot write to the file, because a ledger with gaps proves
// nothing.
func (w *Writer) Write(e Event) {
	e.Time = time.Now()
	// One write call with O_APPEND: lines of different goroutines never mix, and a killed process leaves at most its
	// last line torn.
	if _, err := w.file.WriteString(e.String() + "\n"); err != nil {
		panic(fmt.Sprintf("ledger: %v", err))
	}
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Log is a list of events in the order of their times.
type Log []Event

// Read returns the events of all ledgers in a directory. The last line of a file is ignored if it is torn.
func Read(dir string) (Log, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	var log Log
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasSuffix(line, "\n") {
				continue
			}
			e, err := parse(strings.TrimSuffix(line, "\n"))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			log = append(log, e)
		}
	}
	slices.SortStableFunc(log, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return log, nil
}

func parse(line string) (Event, error) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) != 6 {
		return Event{}, fmt.Errorf("expected 6 fields, found %q", line)
	}
	ns, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return Event{}, fmt.Errorf("expected a time in nanoseconds, found %q", line)
	}
	for i := range fields[:5] {
		if fields[i] == "-" {
			fields[i] = ""
		}
	}
	return Event{time.Unix(0, ns), Kind(fields[1]), fields[2], fields[3], fields[4], fields[5]}, nil
}

// Of returns the events of some kinds.
func (l Log) Of(kinds ...Kind) Log {
	var found Log
	for _, e := range l {
		if slices.Contains(kinds, e.Kind) {
			found = append(found, e)
		}
	}
	return found
}

// ByTask returns the events of each task.
func (l Log) ByTask() map[string]Log { return l.by(func(e Event) string { return e.Task }) }

// ByWorker returns the events of each worker.
func (l Log) ByWorker() map[string]Log { return l.by(func(e Event) string { return e.Worker }) }

// ByClaim returns the events of each claim; the keys are those of Claim.
func (l Log) ByClaim() map[string]Log {
	return l.by(func(e Event) string { return Claim(e.Worker, e.Token) })
}

func (l Log) by(key func(Event) string) map[string]Log {
	groups := map[string]Log{}
	for _, e := range l {
		groups[key(e)] = append(groups[key(e)], e)
	}
	return groups
}

// Claim names one claim of one worker.
func Claim(worker, token string) string { return worker + "/" + token }

// Missing returns those of the tasks that have no event in l, in their order.
func (l Log) Missing(tasks []string) []string {
	have := l.ByTask()
	var missing []string
	for _, task := range tasks {
		if len(have[task]) == 0 {
			missing = append(missing, task)
		}
	}
	return missing
}

// Repeated returns the events of those tasks that have more than one in l.
func (l Log) Repeated() map[string]Log {
	groups := l.ByTask()
	for task, events := range groups {
		if len(events) < 2 {
			delete(groups, task)
		}
	}
	return groups
}

// WithTasks returns a copy in which events that name only a claim name its task as well. Start events show which claim
// belongs to which task.
func (l Log) WithTasks() Log {
	tasks := map[string]string{}
	for _, e := range l.Of(Start) {
		tasks[Claim(e.Worker, e.Token)] = e.Task
	}
	named := slices.Clone(l)
	for i := range named {
		if e := &named[i]; e.Task == "" {
			e.Task = tasks[Claim(e.Worker, e.Token)]
		}
	}
	return named
}
