package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// version is the version of Redis that the server resembles most.
const version = "7.0.0"

// settings are the answers of CONFIG GET.
var settings = map[string]string{
	"appendonly": "no", "databases": "16", "maxmemory": "0", "maxmemory-policy": "noeviction", "save": "",
	"timeout": "0",
}

// facts are the parts of INFO that do not change.
type facts struct {
	runID string
	port  string
	since time.Time
}

func newFacts(addr string) facts {
	var id [20]byte
	rand.Read(id[:])
	_, port, _ := net.SplitHostPort(addr)
	return facts{runID: hex.EncodeToString(id[:]), port: port, since: time.Now()}
}

// register adds the commands that miniredis lacks and clients ask for.
func (s *Server) register() {
	srv := s.mini.Server()
	// The only possible error is that a newer miniredis has the command itself, which is as good.
	_ = srv.Register("ROLE", s.role)
	_ = srv.Register("CONFIG", s.config)
}

// before runs before every command, even within scripts.
func (s *Server) before(c *server.Peer, cmd string, args ...string) bool {
	if !s.isConnection(c) {
		return false // a script calls: it holds the server's lock, and time stands still for it
	}
	s.clock.tick()
	if cmd == "INFO" {
		c.WriteBulk(s.infoText(args))
		return true
	}
	return false
}

// isConnection distinguishes connections from the peers that miniredis makes for calls of scripts: only these have a
// context from the start.
func (s *Server) isConnection(c *server.Peer) bool {
	if _, ok := s.peers.Load(c); ok {
		return true
	}
	if c.Ctx != nil {
		return false
	}
	s.peers.Store(c, true)
	c.OnDisconnect(func() { s.peers.Delete(c) })
	return true
}

func (s *Server) role(c *server.Peer, _ string, _ []string) {
	c.Block(func(w *server.Writer) {
		w.WriteLen(3)
		w.WriteBulk("master")
		w.WriteInt(0)
		w.WriteLen(0)
	})
}

func (s *Server) config(c *server.Peer, _ string, args []string) {
	if len(args) < 2 || !strings.EqualFold(args[0], "GET") {
		c.WriteError("ERR the embedded server knows CONFIG GET only")
		return
	}
	var found []string
	for name, value := range settings {
		if slices.ContainsFunc(args[1:], func(pattern string) bool {
			ok, err := path.Match(strings.ToLower(pattern), name)
			return ok && err == nil
		}) {
			found = append(found, name, value)
		}
	}
	c.Block(func(w *server.Writer) {
		w.WriteMapLen(len(found) / 2)
		for _, v := range found {
			w.WriteBulk(v)
		}
	})
}

// infoText answers INFO with the named sections, all of them when none is named. Unknown ones are left out, as Redis
// does.
func (s *Server) infoText(names []string) string {
	srv := s.mini.Server()
	uptime := time.Since(s.info.since)
	sections := []struct{ name, text string }{
		{"Server", fmt.Sprintf("redis_version:%s\r\nserver_name:embedded\r\nredis_mode:standalone\r\n"+
			"process_id:%d\r\nrun_id:%s\r\ntcp_port:%s\r\nuptime_in_seconds:%d\r\n",
			version, os.Getpid(), s.info.runID, s.info.port, int(uptime.Seconds()))},
		{"Clients", fmt.Sprintf("connected_clients:%d\r\n", srv.ClientsLen())},
		{"Memory", "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n"},
		{"Persistence", "loading:0\r\naof_enabled:0\r\n"},
		{"Stats", fmt.Sprintf("total_connections_received:%d\r\ntotal_commands_processed:%d\r\n",
			srv.TotalConnections(), srv.TotalCommands())},
		{"Replication", "role:master\r\nconnected_slaves:0\r\n"},
		{"Cluster", "cluster_enabled:0\r\n"},
	}
	wanted := func(section string) bool {
		return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool {
			switch strings.ToLower(name) {
			case "all", "default", "everything", strings.ToLower(section):
				return true
			}
			return false
		})
	}
	var parts []string
	for _, section := range sections {
		if wanted(section.name) {
			parts = append(parts, "# "+section.name+"\r\n"+section.text)
		}
	}
	return strings.Join(parts, "\r\n")
}
