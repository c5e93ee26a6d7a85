//go:build unix

package workermain

import (
	"context"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
)

// childVar makes the test binary a worker program: its value names one of programs.
const childVar = "WORKERMAIN_TEST_PROGRAM"

// limit is how long tests wait for what should come at once.
const limit = 60 * time.Second

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		signal.Notify(release, syscall.SIGUSR1)
		programs[name]()
	}
	// Signals that are ignored where the tests run, as under nohup, are ignored by the programs too; those that are
	// caught here have their default there.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	redistest.SideBySide()
	code := m.Run()
	redistest.StopShared()
	os.Exit(code)
}

// release gets SIGUSR1, with which tests let hold and setups go on.
var release = make(chan os.Signal, 1)

// programs are the main functions of worker programs.
var programs = map[string]func(){
	"main": func() { Main(say, hold, obey) },
	"setup": func() {
		os.Exit(Run(Config{Setup: func(ctx context.Context, w *delayed.Worker) error {
			fmt.Println("setting up")
			select {
			case <-release:
			case <-ctx.Done():
				return fmt.Errorf("building: %w", ctx.Err())
			}
			return w.RegisterMethods(&speaker{"methods"})
		}}))
	},
	"stuck setup": func() {
		os.Exit(Run(Config{Setup: func(context.Context, *delayed.Worker) error {
			fmt.Println("setting up")
			<-release
			return nil
		}}))
	},
	"late setup": func() {
		os.Exit(Run(Config{Setup: func(ctx context.Context, _ *delayed.Worker) error {
			fmt.Println("setting up")
			<-ctx.Done()
			return errors.New("the database was left half migrated")
		}}))
	},
	"bad setup": func() {
		os.Exit(Run(Config{Setup: func(context.Context, *delayed.Worker) error { return errors.New("no database") }}))
	},
	//delayed:allow the test expects the refusal of a literal
	"bad functions": func() { Main(say, func() {}, 42) }, //delayed:allow and that of a number
	"no functions":  func() { Main() },
	"own flags": func() {
		greeting := flag.String("greeting", "hello", "what to `say`")
		code := Run(Config{
			Functions: []any{say}, Flags: flag.CommandLine,
			Setup: func(context.Context, *delayed.Worker) error {
				fmt.Println("greeting", *greeting)
				return nil
			},
		})
		fmt.Println("after Run")
		os.Exit(code)
	},
	"subcommand": func() { os.Exit(Run(Config{Functions: []any{say}, Args: os.Args[2:]})) },
	"own logger": func() {
		log := logrus.New()
		log.SetFormatter(&logrus.TextFormatter{DisableColors: true})
		os.Exit(Run(Config{Functions: []any{say}, Worker: delayed.WorkerConfig{Logger: log.WithField("mine", "yes")}}))
	},
	"periodic": func() {
		os.Exit(Run(Config{Functions: []any{say}, Worker: delayed.WorkerConfig{Schedulers: []delayed.SchedulerConfig{{
			Queue: os.Args[slices.Index(os.Args, "-queues")+1], Owner: "test",
			Entries: []delayed.Entry{{Name: "greeting", Spec: "@every 1s", Task: delayed.Call(say, "hello again")}},
		}}}}))
	},
	"serving": func() {
		os.Exit(Run(Config{Functions: []any{say}, Serve: func(mux *http.ServeMux, rdb *delayed.Store) error {
			mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintln(w, "redis", rdb.Ping(r.Context()) == nil)
			})
			mux.Handle("GET /debug/vars", expvar.Handler())
			mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("ouch\x1b[31m") })
			mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) { panic("never called") })
			return nil
		}}))
	},
	"bad pattern": func() {
		os.Exit(Run(Config{Functions: []any{say}, Serve: func(mux *http.ServeMux, _ *delayed.Store) error {
			mux.Handle("no slash", http.NotFoundHandler())
			return nil
		}}))
	},
	"prefix": func() {
		os.Exit(Run(Config{Functions: []any{say}, Dial: func(rawURL string) (*delayed.Store, error) {
			rdb, err := delayed.Dial(rawURL)
			if err != nil {
				return nil, err
			}
			return rdb.WithPrefix("test."), nil
		}}))
	},
}

// The functions of the programs.

func say(text string) { fmt.Println("said", text) }

func hold() {
	fmt.Println("holding")
	<-release
	fmt.Println("released")
}

func obey(ctx context.Context) error {
	fmt.Println("waiting")
	<-ctx.Done()
	fmt.Println("cause:", context.Cause(ctx))
	return ctx.Err()
}

type speaker struct{ name string }

func (s *speaker) Say(text string) { fmt.Println(s.name, "said", text) }

// child is a running worker program.
type child struct {
	*childproc.Process
	t *testing.T
}

// command returns a command that runs one of programs, with no environment variable of this package set.
func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DELAYED_") && !strings.HasPrefix(v, "REDIS_URL=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// Under the race detector a program would sleep for a second before it exits.
	cmd.Env = append(cmd.Env, childVar+"="+name, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// launch runs a command until the test ends.
func launch(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	p, err := childproc.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return &child{p, t}
}

// newQueue returns a queue of the shared server, and the flags with which programs serve it.
func newQueue(t *testing.T) (q *delayed.Queue, flags []string) {
	t.Helper()
	server := redistest.Shared(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	q = delayed.NewQueue(redistest.Name(t), rdb)
	return q, []string{"-redis", server.URL(), "-queues", q.Name()}
}

func delay(t *testing.T, q *delayed.Queue, fn any, args ...any) {
	t.Helper()
	if _, err := q.DelayContext(t.Context(), fn, args...); err != nil {
		t.Fatal(err)
	}
}

// sees waits until the program has written something that matches a pattern, and returns the last submatch.
func (c *child) sees(pattern string) string {
	c.t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(limit)
	for {
		ended := !c.Running()
		if m := re.FindStringSubmatch(c.Output()); m != nil {
			return m[len(m)-1]
		}
		if ended {
			c.t.Fatalf("%s before it wrote %q:\n%s", c.Describe(), pattern, c.Output())
		}
		select {
		case <-late:
			c.t.Fatalf("waited %v for %q:\n%s", limit, pattern, c.Output())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// sends sends a signal.
func (c *child) sends(sig syscall.Signal) {
	c.t.Helper()
	if err := c.Signal(sig); err != nil {
		c.t.Fatalf("%v: %v\n%s", sig, err, c.Output())
	}
}

// ends waits for the end of the program and checks its exit code.
func (c *child) ends(code int) {
	c.t.Helper()
	select {
	case <-c.Done():
	case <-time.After(limit):
		c.t.Fatalf("waited %v for the end:\n%s", limit, c.Output())
	}
	if got := c.ExitCode(); got != code {
		c.t.Fatalf("expected exit code %d, found %d:\n%s", code, got, c.Output())
	}
}

// staysSilent checks that the program writes nothing that contains text, for long enough to have done so many times
// over.
func (c *child) staysSilent(text string) {
	c.t.Helper()
	<-time.After(300 * time.Millisecond)
	if strings.Contains(c.Output(), text) {
		c.t.Fatalf("expected no %q:\n%s", text, c.Output())
	}
}

func TestMainRunsTasks(t *testing.T) {
	q, _ := newQueue(t)
	cmd := command("main")
	cmd.Env = append(cmd.Env, "REDIS_URL="+redistest.Shared(t).URL(), "DELAYED_QUEUES="+q.Name())
	c := launch(t, cmd)
	delay(t, q, say, "hello")
	c.sees("said hello")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
	c.sees("worker stopped")
}

func TestOwnFlagsAndCodeAfterRun(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("own flags", append(flags, "-greeting", "hi")...))
	c.sees("greeting hi")
	delay(t, q, say, "hello")
	c.sees("said hello")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
	c.sees("after Run")
}

func TestSubcommand(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("subcommand", append([]string{"work"}, flags...)...))
	delay(t, q, say, "hello")
	c.sees("said hello")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestOwnLogger(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("own logger", flags...))
	c.sees("worker started.* mine=yes")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestDialOfOnesOwn(t *testing.T) {
	q, flags := newQueue(t)
	rdb, err := delayed.Dial(redistest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	delay(t, delayed.NewQueue(q.Name(), rdb.WithPrefix("test.")), say, "prefixed")
	c := launch(t, command("prefix", flags...))
	c.sees("said prefixed")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

// TestLogThatNobodyReads closes the reading end of standard error, as "worker | head" does, in the middle of a task.
func TestLogThatNobodyReads(t *testing.T) {
	q, flags := newQueue(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := command("main", flags...)
	cmd.Stderr = writer
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	delay(t, q, hold)
	if line := make([]byte, len("holding\n")); readFull(stdout, line) != nil || string(line) != "holding\n" {
		t.Fatalf("expected holding, found %q", line)
	}
	reader.Close()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	rest, _ := io.ReadAll(stdout)
	if err := cmd.Wait(); err != nil || string(rest) != "released\n" {
		t.Errorf("expected that the task ends and so does the program, found %v and %q", err, rest)
	}
}

func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	return err
}

func TestLimitsEndTheProgram(t *testing.T) {
	q, flags := newQueue(t)
	for _, text := range []string{"one", "two", "three"} {
		delay(t, q, say, text)
	}
	c := launch(t, command("main", append(flags, "-once")...))
	c.sees("said one")
	c.ends(exitClean)
	c.sees(`worker stops.* reason="max tasks"`)
	c = launch(t, command("main", append(flags, "-stop-when-empty")...))
	c.sees("(?s)said two.*said three|said three.*said two")
	c.ends(exitClean)
	c.sees(`worker stops.* reason=empty`)
}
