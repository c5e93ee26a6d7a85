package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestScriptPeers runs tasks through each installed peer that is another program, and closes it while its worker waits:
// as when bench ends, for whatever reason. The worker's children must have ended then as well.
func TestScriptPeers(t *testing.T) {
	for _, p := range slices.Concat(allPeers(), pythonPeers) {
		if p.driver == nil {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			if _, err := p.version(); err != nil {
				t.Skip(err)
			}
			s, err := startServer(aofOff)
			if err != nil {
				t.Fatal(err)
			}
			defer s.stop()
			producer := scriptDriver(t, p, s.addr)
			const n = 20
			worker := scriptDriver(t, p, s.addr)
			if err := worker.begin(&request{
				Op: "work", N: 2 * n, Concurrency: p.executors(50),
				Latency: true,
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := producer.do(&request{Op: "enqueue", N: n, Rate: 1000}); err != nil {
				t.Fatal(err)
			}
			if _, err := producer.do(&request{Op: "enqueue", N: n - 1, Rate: 1000, Producers: 1}); err != nil {
				t.Fatal(err)
			}
			select {
			case a := <-worker.answers:
				t.Fatalf("the driver answered before the last task: %+v", a)
			case <-time.After(100 * time.Millisecond): // time for an error to show
			}
			if _, err := producer.do(&request{Op: "enqueue", N: 1, Rate: 1000, Producers: 1}); err != nil {
				t.Fatal(err)
			}
			a, err := worker.receive()
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Latencies) != 2*n || slices.Min(a.Latencies) < 10 || slices.Max(a.Latencies) > 10e6 ||
				a.Seconds <= 0 || a.CPU < 0 {
				t.Errorf("expected %d latencies of 10 µs to 10 s, found %+v", 2*n, a)
			}

			worker = scriptDriver(t, p, s.addr)
			if err := worker.begin(&request{Op: "work", N: n, Concurrency: p.executors(50)}); err != nil {
				t.Fatal(err)
			}
			family := descendants(worker.cmd.Process.Pid)
			if pool := p.name == "celery" || p.name == "celery-defaults"; pool && len(family) != 3 {
				t.Errorf("expected a process and its pool of 2, found %d", len(family))
			}
			begin := time.Now()
			worker.close()
			awaitGone(t, family)
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("closing took %v", took)
			}
		})
	}
}

// TestScriptPeerFails expects the error message of the peer itself.
func TestScriptPeerFails(t *testing.T) {
	p, err := peerNamed("rq")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.version(); err != nil {
		t.Skip(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	d := scriptDriver(t, p, "127.0.0.1:"+port)
	if _, err := d.do(&request{Op: "enqueue", N: 1}); err == nil || !strings.Contains(err.Error(), "ConnectionError") {
		t.Errorf("expected the client's ConnectionError, found %v", err)
	}
}

// TestScriptPeerMissing expects the message to name what installs the peer.
func TestScriptPeerMissing(t *testing.T) {
	p, err := peerNamed("celery")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if _, err := p.version(); err == nil || !strings.Contains(err.Error(), "in the folder bench") {
		t.Errorf("elsewhere: %v", err)
	}
	if err := os.Mkdir("drivers", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("drivers/drive.py", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.version(); err == nil || !strings.Contains(err.Error(), "make bench-peers-setup") {
		t.Errorf("not installed: %v", err)
	}
}

func scriptDriver(t *testing.T, p *peer, addr string) *program {
	t.Helper()
	d, err := startProgram(p, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

// descendants returns a process and all that it has started.
func descendants(pid int) []int {
	all := []int{pid}
	for _, child := range children(pid) {
		all = append(all, descendants(child)...)
	}
	return all
}

// awaitGone fails unless the processes end within 5 s.
func awaitGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for deadline := time.Now().Add(5 * time.Second); runs(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				t.Errorf("process %d still runs: %q", pid, line)
				break
			}
		}
	}
}

// runs reports whether a process is still running. One that has ended but that nobody has waited for yet is not.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
