package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

func TestMain(m *testing.M) {
	code := m.Run()
	StopShared()
	os.Exit(code)
}

// recorder is a testing.TB that records failures instead of failing.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Skip(args ...any) { r.Fatalf("skipped: %s", fmt.Sprint(args...)) }

// run calls f and returns what it reported.
func (r *recorder) run(f func(testing.TB)) (reported string) {
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		reported = strings.Join(r.errors, "\n")
	}()
	f(r)
	return ""
}

func TestShared(t *testing.T) {
	s := Shared(t)
	if s != Shared(t) {
		t.Error("two calls of Shared gave two servers")
	}
	dir, err := redis.Strings(s.Dial(t).Do("CONFIG", "GET", "dir"))
	if err != nil || !strings.HasPrefix(filepath.Base(dir[1]), "redistest") {
		t.Errorf("its folder is %q, %v: expected one of its own, as a server loads the snapshot it finds", dir, err)
	}
	if pong, err := redis.String(s.Dial(t).Do("PING")); err != nil || pong != "PONG" {
		t.Errorf("PING: %q, %v", pong, err)
	}
	for name, f := range map[string]func(testing.TB){
		"Stop": s.Stop, "Kill": s.Kill, "Restart": s.Restart, "Pause": s.Pause, "Resume": s.Resume,
	} {
		if got := (&recorder{TB: t}).run(f); !strings.Contains(got, "use Start") {
			t.Errorf("%s of the shared server: %q", name, got)
		}
	}
}

func TestMissingServer(t *testing.T) {
	t.Setenv("REDIS_SERVER", "/does/not/exist/redis-server")
	got := (&recorder{TB: t}).run(func(tb testing.TB) { tb.Helper(); Start(tb) })
	if !strings.Contains(got, howToInstall) {
		t.Errorf("expected the message to say how to install a server, found %q", got)
	}
}

func TestOtherServer(t *testing.T) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("REDIS_SERVER names the only server here")
	}
	link := t.TempDir() + "/my-redis"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_SERVER", link)
	if s := Start(t); s.path != link {
		t.Errorf("started %s, expected %s", s.path, link)
	}
}

// TestServerWithoutTLS: a test fails if the server lacks TLS, unless the environment allows it.
func TestServerWithoutTLS(t *testing.T) {
	certs := NewTLS(t)
	for name, says := range map[string]string{
		"Redis":  `>>> 'tls-port "1"'; Bad directive or wrong number of arguments`,
		"Valkey": "# Failed finding TLS support.",
	} {
		program := filepath.Join(t.TempDir(), name)
		script := "#!/bin/sh\ncat <<'END'\n" + says + "\nEND\nexit 1\n"
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("REDIS_SERVER", program)
		for allow, want := range map[string]string{"": "built without TLS, expected one", "1": "skipped: "} {
			t.Setenv(withoutTLS, allow)
			got := (&recorder{TB: t}).run(func(tb testing.TB) { tb.Helper(); certs.Start(tb) })
			if !strings.Contains(got, want) {
				t.Errorf("%s, %s=%q: expected %q, found %q", name, withoutTLS, allow, want, got)
			}
		}
	}
}

func TestBadArgument(t *testing.T) {
	got := (&recorder{TB: t}).run(func(tb testing.TB) { tb.Helper(); Start(tb, "--no-such-option", "1") })
	if !strings.Contains(got, "no-such-option") {
		t.Errorf("expected the server's own words, found %q", got)
	}
}

// TestTakenPort: another program takes the port between the search for a free one and the start.
func TestTakenPort(t *testing.T) {
	other := Start(t)
	s := &Server{path: other.path, port: other.port, args: other.args}
	if err := s.start(); !errors.Is(err, errPortTaken) {
		t.Errorf("expected %v, found %v", errPortTaken, err)
	}
	if err := other.answers(other.PID() + 1); err == nil {
		t.Error("another server's answer was taken for ours")
	}
	if isFree(other.port) {
		t.Error("the port of a running server looks free")
	}
}

func TestArguments(t *testing.T) {
	s := Start(t, "--maxmemory", "3mb")
	conf, err := redis.StringMap(s.Do(t, "CONFIG", "GET", "*"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"maxmemory": "3145728", "save": "", "appendonly": "no",
		"bind": "127.0.0.1",
	} {
		if conf[name] != want {
			t.Errorf("%s is %q, expected %q", name, conf[name], want)
		}
	}
}

func TestRestartForgets(t *testing.T) {
	s := Start(t)
	s.Do(t, "SET", "k", "v")
	pid, addr := s.PID(), s.Addr()
	s.Restart(t)
	if s.PID() == pid || s.Addr() != addr {
		t.Errorf("process %d at %s became %d at %s", pid, addr, s.PID(), s.Addr())
	}
	if v := s.Do(t, "GET", "k"); v != nil {
		t.Errorf("found %s after a restart without persistence", v)
	}
}

func TestKillKeepsAppendOnlyFile(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s.Do(t, "SET", "k", "v")
	s.Kill(t)
	if _, err := redis.Dial("tcp", s.Addr()); err == nil {
		t.Error("a killed server accepts connections")
	}
	s.Restart(t)
	if v, err := redis.String(s.Do(t, "GET", "k"), nil); err != nil || v != "v" {
		t.Errorf("found %q, %v", v, err)
	}
}

func TestPauseAnswersLater(t *testing.T) {
	s := Start(t)
	conn := s.Dial(t)
	s.Pause(t)
	if err := conn.Send("INCR", "k"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	other, err := redis.Dial("tcp", s.Addr(), redis.DialReadTimeout(50*time.Millisecond))
	if err != nil {
		t.Fatalf("the kernel should accept connections for a paused server: %v", err)
	}
	if reply, err := other.Do("PING"); err == nil {
		t.Errorf("a paused server answers %v", reply)
	}
	other.Close()
	s.Resume(t)
	if n, err := redis.Int(conn.Receive()); err != nil || n != 1 {
		t.Errorf("after Resume: %d, %v", n, err)
	}
}

func TestServerEndsWithTest(t *testing.T) {
	var s *Server
	t.Run("inner", func(t *testing.T) {
		s = Start(t)
		s.Pause(t) // a paused server must end as well
	})
	if s.process().Running() || !isFree(s.port) {
		t.Error("the server outlived its test")
	}
}

func TestServerThatEndsByItselfIsNoticed(t *testing.T) {
	s := Start(t)
	r := &recorder{TB: t}
	s.process().Kill()
	if got := r.run(s.end); !strings.Contains(got, "ended during the test") || !strings.Contains(got, "killed") {
		t.Errorf("reported %q", got)
	}
	s.Kill(t)
	if got := (&recorder{TB: t}).run(s.end); got != "" {
		t.Errorf("a server that its test killed is reported: %q", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	addrs := make([]string, 8)
	for i := range addrs {
		wg.Go(func() { addrs[i] = Start(t).Addr() })
	}
	wg.Wait()
	slices.Sort(addrs)
	if len(slices.Compact(addrs)) != 8 || addrs[0] == "" {
		t.Errorf("addresses %q", addrs)
	}
}

func TestName(t *testing.T) {
	t.Run("odd/näme_retry", func(t *testing.T) {
		a, b := Name(t), Name(t)
		if a == b || strings.ContainsAny(a, "_:{} /") || !strings.HasPrefix(a, "TestName-odd-n-me-retry.") {
			t.Errorf("names %q and %q", a, b)
		}
	})
}

func TestCommandStatsAndScripts(t *testing.T) {
	s := Start(t)
	conn := s.Dial(t)
	script := redis.NewScript(1, "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[1])")
	if err := script.Load(conn); err != nil {
		t.Fatal(err)
	}
	before := s.CommandStats(t)
	for range 3 {
		if _, err := conn.Do("EVALSHA", script.Hash(), 1, "k"); err != nil {
			t.Fatal(err)
		}
	}
	diff := s.CommandStats(t).Since(before)
	if diff.String() != "incr=6 evalsha=3" || diff.Total() != 9 || diff.Total("incr") != 3 {
		t.Errorf("counted %s, total %d, without incr %d", diff, diff.Total(), diff.Total("incr"))
	}
	s.FlushScripts(t)
	if _, err := conn.Do("EVALSHA", script.Hash(), 1, "k"); err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
		t.Errorf("after FlushScripts: %v", err)
	}
}

func TestSlowLog(t *testing.T) {
	s := Start(t)
	const limit = 200 * time.Millisecond // far longer than a command takes, and shorter than the loop
	s.WatchSlow(t, limit)
	conn := s.Dial(t)
	for _, loops := range []int{0, 60_000_000} {
		if _, err := conn.Do("EVAL", "for i = 1, tonumber(ARGV[1]) do local x = i * i end", 0, loops); err != nil {
			t.Fatal(err)
		}
	}
	slow := s.SlowLog(t)
	if len(slow) != 1 || slow[0].Took < limit || slow[0].Args[0] != "EVAL" {
		t.Errorf("slow log %v", slow)
	}
}

func TestPool(t *testing.T) {
	s := Shared(t)
	conn := s.Pool(t, redis.DialClientName("pooled")).Get()
	defer conn.Close()
	if name, err := redis.String(conn.Do("CLIENT", "GETNAME")); err != nil || name != "pooled" {
		t.Errorf("client name %q, %v", name, err)
	}
}
