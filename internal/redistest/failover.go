package redistest

import (
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/faultnet"
)

// Pair is a master and its replica behind one address, as with a managed Redis, a proxy or a virtual IP: FailOver
// changes the server behind the address, and connections that are open stay open.
type Pair struct {
	*faultnet.Proxy
	master, replica *Server
}

// StartPair starts two servers for a test. extra are further arguments of both.
func StartPair(t testing.TB, extra ...string) *Pair {
	t.Helper()
	// Redis waits five seconds for further replicas before it serves the first.
	args := append([]string{"--repl-diskless-sync-delay", "0"}, extra...)
	p := &Pair{master: Start(t, args...), replica: Start(t, args...)}
	p.Proxy = faultnet.NewProxy(t, p.master.Addr())
	p.follow(t)
	return p
}

// Master returns the server behind the address.
func (p *Pair) Master() *Server { return p.master }

// Replica returns the other server.
func (p *Pair) Replica() *Server { return p.replica }

// follow makes one server the replica of the other.
func (p *Pair) follow(t testing.TB) {
	t.Helper()
	host, port, _ := strings.Cut(p.master.Addr(), ":")
	p.replica.Do(t, "REPLICAOF", host, port)
	p.Settled(t)
}

// FailOver makes the replica the master, and the master its replica. New connections lead to the new master; if
// switchFirst is true, they do before it is one. Nothing that the old master has acknowledged is lost: it accepts no
// writes until the replica has all. Old connections stay open.
func (p *Pair) FailOver(t testing.TB, switchFirst bool) {
	t.Helper()
	if switchFirst {
		p.SetTarget(p.replica.Addr())
	}
	host, port, _ := strings.Cut(p.replica.Addr(), ":")
	p.master.Do(t, "FAILOVER", "TO", host, port)
	p.wait(t, "the replica is the master", func() bool {
		return strings.Contains(p.info(t, p.replica), "role:master") &&
			strings.Contains(p.info(t, p.master), "role:slave")
	})
	p.master, p.replica = p.replica, p.master
	p.SetTarget(p.master.Addr())
}

// Settled waits until the replica follows the master, so that another FailOver may come.
func (p *Pair) Settled(t testing.TB) {
	t.Helper()
	p.wait(t, "the replica follows", func() bool {
		return strings.Contains(p.info(t, p.replica), "master_link_status:up") &&
			strings.Contains(p.info(t, p.master), "state=online")
	})
}

func (p *Pair) info(t testing.TB, s *Server) string {
	t.Helper()
	text, _ := s.Do(t, "INFO", "replication").([]byte)
	return string(text)
}

func (p *Pair) wait(t testing.TB, what string, cond func() bool) {
	t.Helper()
	(&Bench{T: t, Server: p.master, Conn: p.master.Dial(t)}).Until(what, cond)
}
