package workermain

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
)

// The defaults of delayed.WorkerConfig, for the help.
const (
	defaultLife        = 15 * time.Second
	defaultGrace       = 25 * time.Second
	defaultCancelGrace = 3 * time.Second
	defaultStuckAfter  = 30 * time.Second
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
	w := &s.worker
	s.add("redis", "url", "Redis: redis://[user:password@]host[:port][/db], rediss:// with TLS, or unix:///path",
		defaultURL,
		func(v string) error {
			s.redisURL = v // checked by Dial, whose errors do not show a password
			return nil
		})
	s.options[0].env = append(s.options[0].env, "DELAYED_URL", "REDIS_URL") // the first as the command delayed has it
	s.add("prefix", "text", "what the keys of all queues begin with", "", func(v string) error {
		s.prefix = &v
		return nil
	})
	s.add("allow", "names", "settings of Redis to run with all the same: eviction, replica, scripts, version",
		strings.Join(w.Allow, ","),
		func(v string) error {
			w.Allow = nil
			for name := range strings.SplitSeq(v, ",") {
				w.Allow = append(w.Allow, strings.TrimSpace(name)) // checked by NewWorker
			}
			return nil
		})
	s.add("queues", "list", "queues to serve: critical,mail in this order of priority; critical=6,mail=3 by weight",
		cmp.Or(showOrder(w.Queues), "none, so it must be given"),
		func(v string) (err error) {
			w.Queues, err = parseOrder(v)
			return err
		})
	s.add("concurrency", "n", "tasks that run at once", strconv.Itoa(cmp.Or(w.Concurrency, 10*runtime.GOMAXPROCS(0))),
		number(&w.Concurrency, 1))
	s.add("prefetch", "n", "tasks claimed ahead of those that run; 0: as the length of handlers allows, -1: none",
		strconv.Itoa(w.Prefetch), number(&w.Prefetch, -1))
	s.add("heartbeat-life", "duration", "how long the worker counts as alive after its last heartbeat",
		cmp.Or(w.HeartbeatLife, defaultLife).String(), duration(&w.HeartbeatLife, time.Millisecond))
	s.add("grace", "duration", "how long to wait for handlers when stopping", showGrace(w.Grace, defaultGrace),
		grace(&w.Grace))
	s.add("cancel-grace", "duration", "how long to wait then for handlers whose contexts were canceled",
		showGrace(w.CancelGrace, defaultCancelGrace), grace(&w.CancelGrace))
	s.add("timeout", "duration",
		"how long a handler may run if neither the call nor the function sets it; 0: for as long as it likes",
		w.Timeout.String(),
		duration(&w.Timeout, 0))
	s.add("stuck-after", "duration",
		"how long a handler may go on after that before another one takes its place; 0: nobody looks",
		showGrace(w.StuckAfter, defaultStuckAfter), grace(&w.StuckAfter))
	s.add("max-stuck", "n", "how many such handlers the worker bears before it stops; 0: a tenth of -concurrency, "+
		"-1: none", strconv.Itoa(w.MaxStuck),
		number(&w.MaxStuck, -1))
	s.add("legacy", "", "share queues with workers of keakon's package delayed or of go-delayed",
		"false",
		toggle(&s.legacy))
	s.add("python-queue", "name", "queue that Python tasks are handed on to", w.PythonQueue, func(v string) error {
		w.PythonQueue = v
		return nil
	})
	s.addLimits()
	if cfg.Worker.Logger == nil {
		s.add("log-level", "level", "what to log: debug, info, warn or error", "info", s.setLevel)
		s.add("log-format", "format", "how to log: text or json", "text", s.setFormat)
	}
	s.add("listen", "address", "answer /healthz, /readyz and what the program adds, such as /metrics, at host:port", "",
		s.setListen)
	s.add("debug", "", "let programs of this machine read /debug/pprof of -listen", "", toggle(&s.debug))
	s.add("wait", "duration", "how long to wait for Redis at the start", s.wait.String(), duration(&s.wait, 0))
	s.add("functions", "", "print the registered functions with their signatures as JSON; needs no Redis", "",
		toggle(&s.list))
	s.options[len(s.options)-1].env = nil
	s.add("version", "", "print the version", "", toggle(&s.version))
	s.options[len(s.options)-1].env = nil
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

// life returns the life of the heartbeat.
func (s *settings) life() time.Duration { return cmp.Or(s.worker.HeartbeatLife, defaultLife) }

func number(p *int, least int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fmt.Errorf("expected a whole number from %d", least)
		}
		*p = n
		return nil
	}
}

func duration(p *time.Duration, least time.Duration) func(string) error {
	return func(v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least {
			return fmt.Errorf("expected a duration from %v, such as 1m30s", least)
		}
		*p = d
		return nil
	}
}

// grace is a duration of which 0 means none. In a WorkerConfig 0 is the default, and a negative one means none.
func grace(p *time.Duration) func(string) error {
	set := duration(p, 0)
	return func(v string) error {
		err := set(v)
		if err == nil && *p == 0 {
			*p = -1
		}
		return err
	}
}

func showGrace(d, initial time.Duration) string { return max(cmp.Or(d, initial), 0).String() }

func toggle(p *bool) func(string) error {
	return func(v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return errors.New("expected true or false")
		}
		*p = b
		return nil
	}
}

func (s *settings) setListen(v string) error {
	if _, _, err := net.SplitHostPort(v); err != nil {
		return errors.New("expected host:port, such as localhost:8080, or :8080 for all addresses of the machine")
	}
	s.listen = v
	return nil
}
