// Package redistest gives tests real Redis servers: one that all tests of a binary share, private ones that may be
// stopped, killed and paused, and a cluster of three nodes. It also writes and reads whole queues, and checks that a
// queue's keys agree with one another. It is for tests only.
package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const howToInstall = "install it (apt-get install redis-server, brew install redis) or set REDIS_SERVER to the path " +
	"of one"

// binary finds the server's program.
func binary() (string, error) {
	name := os.Getenv("REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no Redis server: %w: %s", err, howToInstall)
	}
	return path, nil
}

// shared is the server of all ordinary tests of this binary.
var shared struct {
	sync.Mutex
	server *Server
	dir    string
	err    error
}

// Shared returns the server that the tests of this binary share; the first call starts it. Tests keep apart by queue
// names, see Name. It cannot be stopped, killed or paused, and lives until StopShared; without that, on Linux, until
// the binary ends.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		// Nothing is ever saved, but a server loads the snapshot that it finds in its folder.
		shared.dir, shared.err = os.MkdirTemp("", "redistest") //nolint:usetesting // it outlives the test
		if shared.err == nil {
			shared.server, shared.err = launch(shared.dir, nil)
		}
	}
	if shared.err != nil {
		t.Fatalf("redistest: %v", shared.err)
	}
	return shared.server
}

// StopShared stops the shared server if there is one. Call it in TestMain after m.Run, before leaks of goroutines are
// looked for.
func StopShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.proc.Kill()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	shared.server, shared.err = nil, errors.New("the shared server has been stopped")
}

// Start starts a server of the test's own, which ends with the test. args are further arguments of redis-server such as
// "--maxmemory", "4mb" or "--appendonly", "yes"; they come after, and so replace, those of this package: nothing is
// saved.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	// The directory is registered for removal first, so it is removed last.
	s, err := launch(t.TempDir(), args)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s.private = true
	t.Cleanup(func() { s.end(t) })
	return s
}

var names atomic.Int64

// Name returns a queue name that no other call of this test binary has returned. It tells the test; a cluster needs
// braces around it.
func Name(t testing.TB) string {
	t.Helper()
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, t.Name())
	// The number at the end keeps the name from ending in a suffix that queues reserve.
	return fmt.Sprintf("%s.%d", clean[:min(len(clean), 80)], names.Add(1))
}
