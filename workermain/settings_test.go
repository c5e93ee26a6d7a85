package workermain

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
)

// parsed reads flags and environment, given as alternating names and values.
func parsed(cfg Config, args []string, env ...string) (*settings, error) {
	s := newSettings(cfg)
	return s, s.parse(flag.NewFlagSet("test", flag.ExitOnError), args, func(name string) (string, bool) {
		for i := 0; i < len(env); i += 2 {
			if env[i] == name {
				return env[i+1], true
			}
		}
		return "", false
	})
}

func TestDefaults(t *testing.T) {
	s, err := parsed(Config{}, nil, "DELAYED_QUEUES", "mail")
	if err != nil {
		t.Fatal(err)
	}
	want := delayed.WorkerConfig{
		Queues: delayed.Strict{"mail"}, Concurrency: 10 * runtime.GOMAXPROCS(0), HeartbeatLife: 15 * time.Second,
		Grace: 25 * time.Second, CancelGrace: 3 * time.Second, StuckAfter: 30 * time.Second,
	}
	if fmt.Sprintf("%#v", s.worker) != fmt.Sprintf("%#v", want) {
		t.Errorf("expected %+v, found %+v", want, s.worker)
	}
	if s.redisURL != "redis://localhost:6379/0" || s.wait != 5*time.Second || s.listen != "" || s.debug ||
		s.level != logrus.InfoLevel || s.json {
		t.Errorf("found %+v", s)
	}
}

func TestFlagsAndEnvironment(t *testing.T) {
	args := []string{
		"-redis", "redis://r", "-queues", "a=1,b=2", "-concurrency", "7", "-prefetch", "3", "-heartbeat-life", "2s",
		"-grace", "1m",
		"-cancel-grace", "0", "-legacy", "-python-queue", "py", "-log-level", "warn", "-log-format", "json", "-listen",
		":8080", "-wait", "0",
		"-stop-when-empty", "-stop-when-empty-for", "3s", "-max-tasks", "5", "-max-time", "1h", "-max-memory",
		"512MiB", "-rest", "10ms",
		"-timeout", "2m", "-stuck-after", "0", "-max-stuck", "4", "-prefix", "app:", "-allow", "eviction, replica",
		"-debug", "-isolate", "-isolate-memory", "1GiB", "-isolate-cpu", "9s",
	}
	var env []string
	for i := 0; i < len(args); i++ {
		name := "DELAYED_" + strings.ToUpper(strings.ReplaceAll(args[i][1:], "-", "_"))
		value := "true"
		if !slices.Contains([]string{"-legacy", "-stop-when-empty", "-debug", "-isolate"}, args[i]) {
			i++
			value = args[i]
		}
		env = append(env, name, value)
	}
	want := delayed.WorkerConfig{
		Queues: delayed.Weighted{"a": 1, "b": 2}, Concurrency: 7, Prefetch: 3, HeartbeatLife: 2 * time.Second,
		Grace:       time.Minute,
		CancelGrace: -1, PythonQueue: "py", Rest: 10 * time.Millisecond,
		Limits: delayed.WorkerLimits{
			MaxTasks: 5, MaxTime: time.Hour, MaxMemory: 512 << 20,
			StopWhenEmpty: true, StopWhenEmptyFor: 3 * time.Second,
		},
		Timeout: 2 * time.Minute, StuckAfter: -1, MaxStuck: 4, Allow: []string{"eviction", "replica"},
		Isolation: delayed.Isolation{All: true, Memory: 1 << 30, CPU: 9 * time.Second},
	}
	for name, read := range map[string]func() (*settings, error){
		"flags":       func() (*settings, error) { return parsed(Config{}, args) },
		"environment": func() (*settings, error) { return parsed(Config{}, nil, env...) },
	} {
		s, err := read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if fmt.Sprintf("%#v", s.worker) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: expected %+v, found %+v", name, want, s.worker)
		}
		if !s.legacy {
			t.Errorf("%s: expected a handle of WithLegacy", name)
		}
		if s.redisURL != "redis://r" || s.level != logrus.WarnLevel || !s.json || s.wait != 0 ||
			s.listen != ":8080" || !s.debug || s.prefix == nil || *s.prefix != "app:" {
			t.Errorf("%s: found %+v", name, s)
		}
	}
}

func TestPrecedence(t *testing.T) {
	preset := Config{Worker: delayed.WorkerConfig{Queues: delayed.Strict{"preset"}, Concurrency: 1}}
	for _, test := range []struct {
		args []string
		env  []string
		want string
	}{
		{nil, nil, "redis://localhost:6379/0 preset 1"},
		{nil, []string{"REDIS_URL", "redis://plain"}, "redis://plain preset 1"},
		{nil, []string{"REDIS_URL", "redis://plain", "DELAYED_REDIS", "redis://ours"}, "redis://ours preset 1"},
		{nil, []string{"REDIS_URL", "redis://plain", "DELAYED_URL", "redis://ours"}, "redis://ours preset 1"},
		{nil, []string{"DELAYED_URL", "redis://both", "DELAYED_REDIS", "redis://ours"}, "redis://ours preset 1"},
		{[]string{"-redis=redis://flag"}, []string{"DELAYED_REDIS", "redis://ours"}, "redis://flag preset 1"},
		{
			nil,
			[]string{"DELAYED_REDIS", "", "REDIS_URL", "redis://plain", "DELAYED_CONCURRENCY", ""},
			"redis://plain preset 1",
		},
		{
			[]string{"-concurrency=3"},
			[]string{"DELAYED_CONCURRENCY", "2", "DELAYED_QUEUES", "mail"},
			"redis://localhost:6379/0 mail 3",
		},
		{
			[]string{"-concurrency=3"},
			[]string{"DELAYED_CONCURRENCY", "not looked at"},
			"redis://localhost:6379/0 preset 3",
		},
	} {
		s, err := parsed(preset, test.args, test.env...)
		if err != nil {
			t.Errorf("%q %q: %v", test.args, test.env, err)
			continue
		}
		if got := s.redisURL + " " + showOrder(s.worker.Queues) + " " +
			strconv.Itoa(s.worker.Concurrency); got != test.want {
			t.Errorf("%q %q: expected %s, found %s", test.args, test.env, test.want, got)
		}
	}
}

func TestWrongSettings(t *testing.T) {
	for _, test := range []struct {
		args []string
		env  []string
		want string
	}{
		{nil, nil, "no queues: expected -queues or DELAYED_QUEUES"},
		{[]string{"-nonsense"}, nil, "-nonsense"},
		{[]string{"mail"}, nil, `unexpected argument "mail"`},
		{[]string{"-concurrency"}, nil, "needs an argument"},
		{[]string{"-concurrency", "many"}, nil, `"many" for flag -concurrency: expected a whole number from 1`},
		{[]string{"-concurrency", "0"}, nil, "from 1"},
		{[]string{"-prefetch", "-2"}, nil, "from -1"},
		{[]string{"-grace", "25"}, nil, "expected a duration"},
		{[]string{"-grace", "-1s"}, nil, "expected a duration"},
		{[]string{"-heartbeat-life", "0"}, nil, "expected a duration"},
		{[]string{"-max-tasks", "-1"}, nil, "from 0"},
		{[]string{"-max-time", "3600"}, nil, "expected a duration"},
		{[]string{"-max-memory", "much"}, nil, "such as 512MiB"},
		{[]string{"-log-level", "loud"}, nil, "expected debug, info, warn or error"},
		{[]string{"-log-format", "xml"}, nil, "expected text or json"},
		{[]string{"-listen", "8080"}, nil, "expected host:port"},
		{[]string{"-queues", "mail", "-debug"}, nil, "-debug without -listen"},
		{[]string{"-legacy=perhaps"}, nil, "expected true or false"},
		{[]string{"-queues", "a=1,b"}, nil, "a weight for every queue or for none"},
		{[]string{"-queues", "a=x"}, nil, `queue "a" has weight "x"`},
		{[]string{"-queues", "a=1,a=2"}, nil, `queue "a" is named twice`},
		{[]string{"-queues", "a=1=2"}, nil, `queue "a" has two weights, 1 and 2: expected one`},
		{[]string{"-queues", "b=1, a = 1 = 2"}, nil, `queue "a" has two weights`},
		{
			nil,
			[]string{"DELAYED_WAIT", "long"},
			`invalid value "long" for environment variable DELAYED_WAIT: expected a duration`,
		},
		{nil, []string{"DELAYED_LEGACY", "perhaps"}, "DELAYED_LEGACY: expected true or false"},
	} {
		if _, err := parsed(Config{}, test.args, test.env...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q %q: expected %q, found %v", test.args, test.env, test.want, err)
		}
	}
	_, err := parsed(Config{Worker: delayed.WorkerConfig{Logger: logrus.New()}}, []string{"-log-level", "info"})
	if err == nil || !strings.Contains(err.Error(), "-log-level") {
		t.Errorf("-log-level beside a logger of the program's own: %v", err)
	}
}

func TestHelpAndVersionComeFirst(t *testing.T) {
	if _, err := parsed(Config{}, []string{"-help"}, "DELAYED_WAIT", "long"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-help: %v", err)
	}
	if s, err := parsed(Config{}, []string{"-version"}, "DELAYED_WAIT", "long"); err != nil || !s.version {
		t.Errorf("-version: %v", err)
	}
}

func TestQueueLists(t *testing.T) {
	for list, want := range map[string]delayed.QueueOrder{
		"mail":               delayed.Strict{"mail"},
		"critical, mail":     delayed.Strict{"critical", "mail"},
		"critical=6, mail=3": delayed.Weighted{"critical": 6, "mail": 3},
		"{a}jobs=1,x=y=2":    delayed.Weighted{"{a}jobs": 1, "x=y": 2},
		" mail = 3 ":         delayed.Weighted{"mail": 3},
	} {
		got, err := parseOrder(list)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: expected %v, found %v, %v", list, want, got, err)
		}
		again, err := parseOrder(showOrder(want))
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%q: shown as %q", list, showOrder(want))
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1000": 1000, "1KiB": 1 << 10, "3M": 3 << 20, "512MiB": 512 << 20,
		"2G": 2 << 30, "8589934591GiB": 8589934591 << 30,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: expected %d, found %d, %v", text, want, got, err)
		}
		if again, err := parseSize(showSize(want)); err != nil || again != want {
			t.Errorf("%d is shown as %s", want, showSize(want))
		}
	}
	for _, text := range []string{"", "M", "-1", "1.5G", "1MB", "1KiBM", "8589934592GiB", "9223372036854775808"} {
		if _, err := parseSize(text); err == nil {
			t.Errorf("%q: expected an error", text)
		}
	}
}

func TestHelp(t *testing.T) {
	own := flag.NewFlagSet("/usr/bin/mailworker", flag.ExitOnError)
	own.String("greeting", "hello", "what to `say`")
	s := newSettings(Config{Worker: delayed.WorkerConfig{Queues: delayed.Weighted{"mail": 1}, Grace: -1}})
	if err := s.parse(own, []string{"-h"}, nil); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	var b strings.Builder
	s.printHelp(&b, own)
	for _, want := range []string{
		"Usage: mailworker [flags]",
		"  -redis url\n", "environment: DELAYED_REDIS, DELAYED_URL, REDIS_URL\n", "(default redis://localhost:6379/0)",
		"  -queues list\n", "(default mail=1)",
		"  -concurrency n\n", "(default " + strconv.Itoa(10*runtime.GOMAXPROCS(0)) + ")",
		"  -heartbeat-life duration\n", "(default 15s)", "environment: DELAYED_HEARTBEAT_LIFE\n",
		"  -grace duration\n", "(default 0s)", "(default 3s)",
		"  -legacy\n", "  -version\n        print the version\n",
		"  -greeting say\n        what to say (default hello)\n",
		"Exit codes: 0 clean",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("expected %q in:\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 130 {
			t.Errorf("long line: %s", line)
		}
	}
}

// TestOnce: the flag is short for two others.
func TestOnce(t *testing.T) {
	s, err := parsed(Config{}, []string{"-queues", "a", "-once"})
	if want := (delayed.WorkerLimits{MaxTasks: 1, StopWhenEmpty: true}); err != nil || s.worker.Limits != want {
		t.Errorf("expected %+v, found %+v, %v", want, s.worker.Limits, err)
	}
}
