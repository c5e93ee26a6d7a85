// Package embedded runs a small Redis server inside the process, for a first try, for demonstrations and for tests:
// nothing needs to be installed.
//
//	srv, err := embedded.Start(embedded.Config{})
//	if err != nil { … }
//	defer srv.Close()
//	q := delayed.NewQueue("mail", srv.Redis())
//
// Other processes on the same machine, workers for instance, connect to srv.URL().
//
// The server is github.com/alicebob/miniredis with a clock that runs: keys expire, and TIME goes on. It keeps
// everything in memory: all tasks are lost when the process ends or Close is called, so it is no place for work that
// matters. It has no password, and listens on a loopback address only: it trusts whoever is logged in on the machine,
// and broken input from such a client can end the process. It knows no limit of memory and no replicas, and a script
// takes it about ten times as long as Redis.
package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/godelayed/delayed"
)

// anyPort lets the system choose a free port.
const anyPort = "127.0.0.1:0"

// Config defines how the server is started. The zero value is a server on a free port whose time is real.
type Config struct {
	// Addr is host and port to listen on; the host must be a loopback address or "localhost", port 0 means any free
	// port. Defaults to "127.0.0.1:0".
	Addr string

	// Virtual makes the server's time stand still except when Advance moves it, so that a test can let an hour pass at
	// once. Blocking commands still time out in real time. Defaults to false: time is real.
	Virtual bool

	// Now is the time at which a virtual clock starts, rounded down to milliseconds. Defaults to the time of Start.
	// It is an error without Virtual.
	Now time.Time
}

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	mini  *miniredis.Miniredis
	clock *clock
	redis *delayed.Store
	addr  string

	info  facts
	peers sync.Map // *server.Peer of each connection to true; those that scripts use are not among them

	closing sync.Once
	err     error // of closing the handle
}

// Start starts a server, which runs until Close.
func Start(cfg Config) (*Server, error) {
	addr, err := loopback(cmp.Or(cfg.Addr, anyPort))
	if err != nil {
		return nil, err
	}
	if !cfg.Now.IsZero() && !cfg.Virtual {
		return nil, errors.New("delayed: embedded: Config.Now is set without Config.Virtual: expected both or " +
			"neither, since real time cannot be chosen")
	}
	s := &Server{mini: miniredis.NewMiniRedis()}
	if cfg.Virtual {
		s.clock = newVirtualClock(s.mini, cfg.Now)
	} else {
		s.clock = newRealClock(s.mini, readSystem)
	}
	// Until the hook is in place, refuse commands as a Redis does that is loading its data.
	s.mini.SetError("LOADING the embedded server is starting")
	if err := s.mini.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("delayed: embedded: listening on %s: %w: choose another Config.Addr, or none for any "+
			"free port", addr, err)
	}
	s.addr = s.mini.Addr()
	s.info = newFacts(s.addr)
	s.register()
	s.mini.Server().SetPreHook(s.before)
	if s.redis, err = delayed.Dial(s.URL()); err != nil {
		s.mini.Close()
		return nil, fmt.Errorf("delayed: embedded: %w", err)
	}
	return s, nil
}

// loopback resolves the address and refuses whatever other machines can reach.
func loopback(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("delayed: embedded: Config.Addr %q: expected host:port such as 127.0.0.1:0", addr)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return "", fmt.Errorf("delayed: embedded: Config.Addr %q: expected a loopback address such as 127.0.0.1 or "+
			"::1; "+
			"the embedded server has no password and must not be reached from other machines: use Redis for that", addr)
	}
	return net.JoinHostPort(host, port), nil
}

// Addr returns host and port.
func (s *Server) Addr() string { return s.addr }

// URL returns the address as delayed.Dial takes it. Other processes of this machine can connect to it while this one
// lives.
func (s *Server) URL() string { return "redis://" + s.addr + "/0" }

// Redis returns a handle on the server, always the same. Close closes it.
func (s *Server) Redis() *delayed.Store { return s.redis }

// Now returns the server's time, as TIME returns it.
func (s *Server) Now() time.Time { return s.clock.time() }

// Advance moves the time of a virtual server by d at once: keys whose life ends by then are gone when it returns. It
// wakes nobody: workers see what became due when they look next, which they do at least every five real seconds. It
// panics if d is negative or if the server was started without Config.Virtual.
func (s *Server) Advance(d time.Duration) { s.clock.advance(d) }

// Close closes the handle, ends all connections and forgets all data. Stop workers first. Closing twice is harmless.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.err = s.redis.Close()
		s.mini.Close()
		s.mini.FlushAll()
	})
	return s.err
}
