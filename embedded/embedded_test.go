package embedded_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/embedded"
)

// childEnv makes the test binary a client that blocks: the value is the server's URL.
const childEnv = "EMBEDDED_TEST_CHILD"

func TestMain(m *testing.M) {
	if url := os.Getenv(childEnv); url != "" {
		blockForEver(url)
	}
	os.Exit(m.Run())
}

func blockForEver(url string) {
	conn, err := redis.DialURL(url)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if _, err := conn.Do("SET", "child", os.Getpid()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("blocking")
	_, err = redis.DoWithTimeout(conn, 0, "BLPOP", "list", 0)
	fmt.Println("woken:", err)
	os.Exit(1)
}

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	srv, err := embedded.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return srv
}

func dial(t *testing.T, srv *embedded.Server) redis.Conn {
	t.Helper()
	conn, err := redis.DialURL(srv.URL(), redis.DialReadTimeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func do(t *testing.T, conn redis.Conn, cmd string, args ...any) any {
	t.Helper()
	reply, err := conn.Do(cmd, args...)
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return reply
}

// timeOf asks the server for its time.
func timeOf(t *testing.T, conn redis.Conn) time.Time {
	t.Helper()
	parts, err := redis.Int64s(conn.Do("TIME"))
	if err != nil || len(parts) != 2 {
		t.Fatalf("TIME: %v, %v", parts, err)
	}
	return time.UnixMicro(parts[0]*1_000_000 + parts[1])
}

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestRealTimePasses(t *testing.T) {
	srv := start(t, embedded.Config{})
	conn := dial(t, srv)
	const life = 200 * time.Millisecond
	before := time.Now()
	first := timeOf(t, conn)
	asked := time.Now()
	do(t, conn, "SET", "k", "v", "PX", life.Milliseconds())
	eventually(t, "the key expires", func() bool {
		gone := do(t, conn, "EXISTS", "k") == int64(0)
		if early := time.Since(before); gone && early < life-2*time.Millisecond {
			t.Fatalf("a key with a life of %v was gone after %v", life, early)
		}
		return gone
	})
	least := time.Since(asked)
	passed, most := timeOf(t, conn).Sub(first), time.Since(before)
	if passed < least-5*time.Millisecond || passed > most+5*time.Millisecond {
		t.Errorf("TIME moved by %v in %v to %v", passed, least, most)
	}
	before = time.Now()
	if now := srv.Now(); now.Before(before.Add(-time.Second)) || time.Since(now) < -time.Second {
		t.Errorf("Now is %v, expected about %v", now, before)
	}
}

// TestHeartbeatIsRenewed does what a worker does: a key that is renewed in time must stay, however long.
func TestHeartbeatIsRenewed(t *testing.T) {
	srv := start(t, embedded.Config{})
	conn := dial(t, srv)
	const life = 120 * time.Millisecond
	renewed := time.Now()
	do(t, conn, "SET", "beat", "1", "PX", life.Milliseconds())
	for range 20 {
		<-time.After(life / 6)
		before := time.Now()
		if do(t, conn, "PEXPIRE", "beat", life.Milliseconds()) != int64(1) {
			if since := time.Since(renewed); since < life {
				t.Fatalf("a key with a life of %v was gone %v after it was renewed", life, since)
			}
			do(t, conn, "SET", "beat", "1", "PX", life.Milliseconds()) // the machine was too busy to renew it
		}
		renewed = before
	}
}

func TestTimeStandsStillWithinAScript(t *testing.T) {
	srv := start(t, embedded.Config{})
	conn := dial(t, srv)
	reply, err := redis.Strings(conn.Do("EVAL", `
		redis.call('SET', KEYS[1], 'v', 'PX', 1)
		local a = redis.call('TIME')
		local n = 0
		for i = 1, 500000 do n = n + 1 end
		local b = redis.call('TIME')
		return {a[1] .. '.' .. a[2], b[1] .. '.' .. b[2], tostring(redis.call('EXISTS', KEYS[1]))}`, 1, "k"))
	if err != nil {
		t.Fatal(err)
	}
	if reply[0] != reply[1] {
		t.Errorf("TIME within one script: %s, then %s", reply[0], reply[1])
	}
	if reply[2] != "1" {
		t.Error("a key expired in the middle of a script")
	}
	eventually(t, "the key expires after the script", func() bool { return do(t, conn, "EXISTS", "k") == int64(0) })
}

func TestVirtualTime(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6_789_000, time.UTC)
	srv := start(t, embedded.Config{Virtual: true, Now: at})
	conn := dial(t, srv)
	if got, want := timeOf(t, conn), at.Truncate(time.Millisecond); !got.Equal(want) {
		t.Errorf("at the start: expected %v, found %v", want, got)
	}
	do(t, conn, "SET", "k", "v", "PX", 1000)
	do(t, conn, "SET", "until", "v", "PXAT", at.Add(time.Hour).UnixMilli())
	<-time.After(20 * time.Millisecond) // real time must not matter
	if got := do(t, conn, "PTTL", "k"); got != int64(1000) {
		t.Errorf("PTTL without Advance: expected 1000, found %v", got)
	}
	srv.Advance(999 * time.Millisecond)
	if do(t, conn, "EXISTS", "k") != int64(1) {
		t.Error("after 999 ms a key with a life of 1 s is gone")
	}
	srv.Advance(time.Millisecond)
	if do(t, conn, "EXISTS", "k", "until") != int64(1) {
		t.Error("after 1 s: expected that only the key with a life of 1 s is gone")
	}
	if got := srv.Now().Sub(at.Truncate(time.Millisecond)); got != time.Second {
		t.Errorf("Now: expected that 1 s has passed, found %v", got)
	}
	srv.Advance(time.Hour)
	if do(t, conn, "EXISTS", "until") != int64(0) {
		t.Error("PXAT: the key is still there when its time has come")
	}
	srv.Advance(0)
	// A blocking command waits in real time.
	before := time.Now()
	if got := do(t, conn, "BLPOP", "none", "0.05"); got != nil {
		t.Errorf("BLPOP of an empty list: %v", got)
	}
	if took := time.Since(before); took < 50*time.Millisecond {
		t.Errorf("BLPOP for 50 ms took %v", took)
	}
}

func TestVirtualTimeStartsNow(t *testing.T) {
	srv := start(t, embedded.Config{Virtual: true})
	if off := time.Since(srv.Now()); off < 0 || off > 10*time.Second {
		t.Errorf("Now without Config.Now is %v ago", off)
	}
}

func TestAdvancePanics(t *testing.T) {
	expect := func(name, want string, f func()) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("%s: expected a panic with %q, found %s", name, want, got)
			}
		}()
		f()
	}
	running, virtual := start(t, embedded.Config{}), start(t, embedded.Config{Virtual: true})
	expect("real time", "Config.Virtual", func() { running.Advance(time.Second) })
	expect("negative", "does not go back", func() { virtual.Advance(-time.Second) })
}

func TestConcurrentAdvance(t *testing.T) {
	srv := start(t, embedded.Config{Virtual: true})
	begin := srv.Now()
	var wg sync.WaitGroup
	for range 4 {
		conn := dial(t, srv)
		wg.Go(func() {
			last := time.Time{}
			for range 50 {
				parts, err := redis.Int64s(conn.Do("EVAL",
					"local t = redis.call('TIME') redis.call('SET', KEYS[1], 1, 'PX', 5) return {t[1], t[2]}", 1, "k"))
				if err != nil {
					t.Errorf("EVAL: %v", err)
					return
				}
				now := time.UnixMicro(parts[0]*1_000_000 + parts[1])
				if now.Before(last) {
					t.Errorf("TIME went back from %v to %v", last, now)
				}
				last = now
			}
		})
		wg.Go(func() {
			for range 50 {
				srv.Advance(time.Millisecond)
			}
		})
	}
	wg.Wait()
	if got := srv.Now().Sub(begin); got != 200*time.Millisecond {
		t.Errorf("after 200 times 1 ms: expected 200ms, found %v", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	taken := start(t, embedded.Config{})
	for _, test := range []struct {
		cfg  embedded.Config
		want string
	}{
		{embedded.Config{Addr: "0.0.0.0:0"}, "loopback"},
		{embedded.Config{Addr: ":6379"}, "loopback"},
		{embedded.Config{Addr: "192.0.2.1:6379"}, "loopback"},
		{embedded.Config{Addr: "[::]:6379"}, "loopback"},
		{embedded.Config{Addr: "example.com:6379"}, "loopback"},
		{embedded.Config{Addr: "127.0.0.1"}, "host:port"},
		{embedded.Config{Addr: taken.Addr()}, "Config.Addr"},
		{embedded.Config{Now: time.Unix(1, 0)}, "Config.Virtual"},
	} {
		srv, err := embedded.Start(test.cfg)
		if err == nil {
			srv.Close()
			t.Errorf("%+v: expected an error", test.cfg)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "delayed: embedded: ") || !strings.Contains(text, test.want) {
			t.Errorf("%+v: expected an error that names %q, found: %s", test.cfg, test.want, text)
		}
	}
}

func TestFixedAddress(t *testing.T) {
	first := start(t, embedded.Config{Addr: "localhost:0"})
	addr := first.Addr()
	if host, _, err := net.SplitHostPort(addr); err != nil || host != "127.0.0.1" {
		t.Fatalf("Addr of localhost:0: %q", addr)
	}
	if want := "redis://" + addr + "/0"; first.URL() != want {
		t.Errorf("URL: expected %s, found %s", want, first.URL())
	}
	do(t, dial(t, first), "SET", "k", "v")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, embedded.Config{Addr: addr})
	if second.Addr() != addr {
		t.Errorf("expected %s, found %s", addr, second.Addr())
	}
	if do(t, dial(t, second), "EXISTS", "k") != int64(0) {
		t.Error("a new server has the data of another")
	}
}

func TestHandle(t *testing.T) {
	srv := start(t, embedded.Config{})
	rdb := srv.Redis()
	if srv.Redis() != rdb {
		t.Error("Redis returned two handles")
	}
	if err := rdb.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if err := srv.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := srv.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if err := rdb.Ping(t.Context()); err == nil {
		t.Error("Ping after Close: expected an error")
	}
	if conn, err := net.Dial("tcp", srv.Addr()); err == nil {
		conn.Close()
		t.Error("the server still listens after Close")
	}
}

// TestCloseEndsBlockedClients closes servers whose clients wait for ever and looks for what is left.
func TestCloseEndsBlockedClients(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		srv, err := embedded.Start(embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var blocked sync.WaitGroup
		for range 5 {
			conn, err := redis.DialURL(srv.URL(), redis.DialReadTimeout(20*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			blocked.Go(func() {
				defer conn.Close()
				if _, err := conn.Do("BLPOP", "none", 0); err == nil {
					t.Error("BLPOP returned without an error")
				}
			})
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		blocked.Wait()
	}
	eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// TestKilledClientTakesNothing kills a process that waits for an element: what is pushed then must stay for others.
func TestKilledClientTakesNothing(t *testing.T) {
	srv := start(t, embedded.Config{})
	conn := dial(t, srv)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+srv.URL())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "blocking\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	if got, err := redis.Int(conn.Do("GET", "child")); err != nil || got != child.Process.Pid {
		t.Errorf("the child, process %d, wrote %d, %v", child.Process.Pid, got, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the child ended with %v", err)
	}
	eventually(t, "the server sees that the client is gone", func() bool {
		info, err := redis.String(conn.Do("INFO", "clients"))
		return err == nil && strings.Contains(info, "connected_clients:1\r\n") || push(t, conn)
	})
	if !push(t, conn) {
		t.Error("a killed client took an element that was pushed after its death")
	}
}

// push adds an element and reports whether it is still there; it removes it.
func push(t *testing.T, conn redis.Conn) bool {
	t.Helper()
	do(t, conn, "RPUSH", "list", "1")
	return do(t, conn, "DEL", "list") == int64(1)
}

func TestScriptWakesBlockedClient(t *testing.T) {
	srv := start(t, embedded.Config{})
	waiting, conn := dial(t, srv), dial(t, srv)
	if err := waiting.Send("BLPOP", "a", "b", 20); err != nil {
		t.Fatal(err)
	}
	if err := waiting.Flush(); err != nil {
		t.Fatal(err)
	}
	do(t, conn, "EVAL", "return redis.call('RPUSH', KEYS[1], ARGV[1])", 1, "b", "x")
	if got, err := redis.Strings(waiting.Receive()); err != nil || len(got) != 2 || got[0] != "b" || got[1] != "x" {
		t.Errorf("expected [b x], found %v, %v", got, err)
	}
}

// TestCheck: the server is fit for tasks, and nobody is warned that it forgets them.
func TestCheck(t *testing.T) {
	if warnings, err := start(t, embedded.Config{}).Redis().Check(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("found %q, %v", warnings, err)
	}
}
