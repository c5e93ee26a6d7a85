package workermain

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/nearest"
)

const (
	defaultURL  = "redis://localhost:6379/0"
	defaultWait = 5 * time.Second
)

// settings are the values of flags and environment.
type settings struct {
	redisURL string
	prefix   *string // of keys; nil: that of Dial
	worker   delayed.WorkerConfig
	legacy   bool
	level    logrus.Level
	json     bool
	listen   string
	debug    bool
	wait     time.Duration
	version  bool
	list     bool

	options []option
}

// option is one setting: a flag and its environment variables.
type option struct {
	flag    string
	value   string   // what the help calls its value; "" for a switch
	env     []string // the first that is not empty counts
	help    string
	initial string // what holds without it
	set     func(string) error
}

func newSettings(cfg Config) *settings {
	s := &settings{redisURL: defaultURL, worker: cfg.Worker, level: logrus.InfoLevel, wait: defaultWait}
	w, l := &s.worker, &s.worker.Limits
	// The defaults of delayed.WorkerConfig, for the help.
	w.Concurrency = cmp.Or(w.Concurrency, 10*runtime.GOMAXPROCS(0))
	w.HeartbeatLife = cmp.Or(w.HeartbeatLife, 15*time.Second)
	w.Grace = cmp.Or(w.Grace, 25*time.Second)
	w.CancelGrace = cmp.Or(w.CancelGrace, 3*time.Second)
	w.StuckAfter = cmp.Or(w.StuckAfter, 30*time.Second)

	s.text("redis", "url", "Redis: redis://[user:password@]host[:port][/db], rediss:// with TLS, or unix:///path",
		&s.redisURL) // checked by Dial, whose errors do not show a password
	s.options[0].env = append(s.options[0].env, "DELAYED_URL", "REDIS_URL") // the first as the command delayed has it
	s.add("prefix", "text", "what the keys of all queues begin with", "", func(v string) error {
		s.prefix = &v
		return nil
	})
	s.add("allow", "names", "settings of Redis to run with all the same: eviction, replica, scripts, version",
		strings.Join(w.Allow, ","), func(v string) error {
			w.Allow = nil
			for name := range strings.SplitSeq(v, ",") {
				w.Allow = append(w.Allow, strings.TrimSpace(name)) // checked by NewWorker
			}
			return nil
		})
	s.add("queues", "list", "queues to serve: critical,mail in this order of priority; critical=6,mail=3 by weight",
		cmp.Or(showOrder(w.Queues), "none, so it must be given"), func(v string) (err error) {
			w.Queues, err = parseOrder(v)
			return err
		})
	s.number("concurrency", "tasks that run at once", &w.Concurrency, 1)
	s.number("prefetch", "tasks claimed ahead of those that run; 0: as the length of handlers allows, -1: none",
		&w.Prefetch, -1)
	s.duration("heartbeat-life", "how long the worker counts as alive after its last heartbeat", &w.HeartbeatLife,
		time.Millisecond)
	s.grace("grace", "how long to wait for handlers when stopping", &w.Grace)
	s.grace("cancel-grace", "how long to wait then for handlers whose contexts were canceled", &w.CancelGrace)
	s.duration("timeout", "how long a handler may run if neither the call nor the function sets it; 0: no limit",
		&w.Timeout, 0)
	s.grace("stuck-after",
		"how long a handler may go on after that before another one takes its place; 0: nobody looks", &w.StuckAfter)
	s.number("max-stuck",
		"how many such handlers the worker bears before it stops; 0: a tenth of -concurrency, -1: none",
		&w.MaxStuck, -1)
	s.toggle("legacy", "share queues with workers of keakon's package delayed or of go-delayed", &s.legacy)
	s.text("python-queue", "name", "queue that Python tasks are handed on to", &w.PythonQueue)

	s.add("once", "", "run one task, or none if there is none, and end: -max-tasks 1 -stop-when-empty", "false",
		func(v string) error {
			once, err := boolean(v)
			if once {
				l.MaxTasks, l.StopWhenEmpty = 1, true
			}
			return err
		})
	s.toggle("stop-when-empty", "end when no task is pending or due", &l.StopWhenEmpty)
	s.duration("stop-when-empty-for", "end when that has been so for that long; 0: do not", &l.StopWhenEmptyFor, 0)
	s.number("max-tasks", "end when n tasks have ended; 0: do not", &l.MaxTasks, 0)
	s.duration("max-time", "end after that time; 0: do not", &l.MaxTime, 0)
	s.size("max-memory", "end when the process has more memory: bytes, or with KiB, MiB, GiB; 0: do not", &l.MaxMemory)
	s.toggle("isolate", "run all tasks in child processes, which can be killed; see delayed.Isolation",
		&w.Isolation.All)
	s.size("isolate-memory",
		"what a child process may allocate after its start: bytes, or with KiB, MiB, GiB; 0: any", &w.Isolation.Memory)
	s.duration("isolate-cpu", "processor time that a task in a child process may use; 0: any", &w.Isolation.CPU, 0)
	s.duration("rest", "pause of each executor after a task", &w.Rest, 0)
	if cfg.Worker.Logger == nil {
		s.add("log-level", "level", "what to log: debug, info, warn or error", "info", s.setLevel)
		s.add("log-format", "format", "how to log: text or json", "text", s.setFormat)
	}
	s.add("listen", "address", "answer /healthz, /readyz and what the program adds, such as /metrics, at host:port", "",
		s.setListen)
	s.toggle("debug", "let programs of this machine read /debug/pprof of -listen", &s.debug)
	s.duration("wait", "how long to wait for Redis at the start", &s.wait, 0)
	s.toggle("functions", "print the registered functions with their signatures as JSON; needs no Redis", &s.list)
	s.toggle("version", "print the version", &s.version)
	last := s.options[len(s.options)-2:]
	last[0].env, last[1].env = nil, nil
	return s
}

func (s *settings) add(name, value, help, initial string, set func(string) error) {
	env := variables + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	s.options = append(s.options,
		option{flag: name, value: value, env: []string{env}, help: help, initial: initial, set: set})
}

// parse reads flags, and the environment for flags that were not given. The error of -help is flag.ErrHelp.
func (s *settings) parse(flags *flag.FlagSet, args []string, lookup func(string) (string, bool)) error {
	flags.Init(filepath.Base(cmp.Or(flags.Name(), os.Args[0])), flag.ContinueOnError)
	flags.SetOutput(io.Discard) // Run prints errors and help itself
	flags.Usage = func() {}
	for _, o := range s.options {
		if o.value == "" {
			flags.BoolFunc(o.flag, o.help, o.set)
		} else {
			flags.Func(o.flag, o.help, o.set)
		}
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: expected flags only", flags.Arg(0))
	}
	if s.version {
		return nil
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, o := range s.options {
		if given[o.flag] {
			continue
		}
		if err := o.read(lookup); err != nil {
			return err
		}
	}
	if s.worker.Queues == nil && s.list {
		s.worker.Queues = delayed.Strict{"none"} // the worker is not to run
	}
	if s.worker.Queues == nil {
		return errors.New("no queues: expected -queues or DELAYED_QUEUES with their names, such as critical,mail")
	}
	if s.debug && s.listen == "" {
		return errors.New("-debug without -listen: expected the address at which /debug is answered")
	}
	return nil
}

// read takes an option from the environment.
func (o *option) read(lookup func(string) (string, bool)) error {
	for _, name := range o.env {
		if v, _ := lookup(name); v != "" {
			if err := o.set(v); err != nil {
				return fmt.Errorf("invalid value %q for environment variable %s: %w", v, name, err)
			}
			return nil
		}
	}
	return nil
}

// variables is the prefix of the names of environment variables.
const variables = "DELAYED_"

// ofServices matches variables that Kubernetes sets in each container for services, such as one named delayed.
var ofServices = regexp.MustCompile(
	`_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// checkEnvironment returns an error for each variable of environ that has the prefix but is no setting. It does not
// show values.
func (s *settings) checkEnvironment(environ []string) error {
	var known []string
	for _, o := range s.options {
		known = append(known, o.env...)
	}
	var errs []error
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, variables) || value == "" || slices.Contains(known, name) ||
			ofServices.MatchString(name) {
			continue
		}
		near := slices.MinFunc(known,
			func(a, b string) int { return cmp.Compare(nearest.Distance(name, a), nearest.Distance(name, b)) })
		errs = append(errs, fmt.Errorf("unknown environment variable %s: did you mean %s? The prefix %s is for "+
			"settings of workers", name, near, variables))
	}
	return errors.Join(errs...)
}
