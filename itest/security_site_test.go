//go:build unix

package itest_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/rediscluster"
	"github.com/godelayed/delayed/redissentinel"
)

// Sections of SECURITY.md with ACL commands.
const (
	forAll      = "Least privilege"
	forCluster  = "In a Redis Cluster"
	forSentinel = "With Sentinel"
)

// site is the set of servers on which the users of SECURITY.md work.
type site struct {
	queue   string
	servers []*redistest.Server
	at      *redistest.Server // the server with the queue
	to      *redistest.Server // the server to which the queue moves; nil: none
	dial    func(url string) (*delayed.Store, error)
	url     string          // %s stands for user and password
	tried   map[string]bool // methods of Inspector
}

func single(t *testing.T) *site {
	t.Helper()
	server := redistest.Start(t)
	s := &site{
		queue: "mail", servers: []*redistest.Server{server}, at: server, dial: delayed.Dial,
		url: "redis://%s@" + server.Addr(),
	}
	s.setUsers(t, aclRules(t)[forAll])
	return s
}

func cluster(t *testing.T) *site {
	t.Helper()
	c := redistest.StartCluster(t)
	s := &site{
		queue: "{mail}", servers: c.Nodes, dial: rediscluster.Dial,
		url: "redis://%s@" + strings.Join(c.Addrs(), ","),
	}
	s.at = c.NodeOf(t, s.queue)
	for _, node := range c.Nodes {
		if node != s.at {
			s.to = node
		}
	}
	rules := aclRules(t)
	s.setUsers(t, append(rules[forAll], rules[forCluster]...))
	return s
}

func withSentinel(t *testing.T) *site {
	t.Helper()
	master := redistest.Start(t)
	s := &site{queue: "mail", servers: []*redistest.Server{master}, at: master, dial: redissentinel.Dial}
	var app []string
	rules := aclRules(t)
	for _, rule := range append(rules[forAll], rules[forSentinel]...) {
		if rule[1] == "app" {
			app = rule
			continue
		}
		s.setUsers(t, [][]string{rule})
	}
	addr := startSentinel(t, master.Addr())
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Do("ACL", redis.Args{}.AddFlat(app)...); err != nil {
		t.Fatalf("ACL %s: %v", strings.Join(app, " "), err)
	}
	s.url = "redis://%s@" + addr + "/0?master=mymaster&sentinel_user=app&sentinel_password=app-password"
	// The Sentinel needs no more than the page's user.
	for deadline := time.Now().Add(60 * time.Second); ; <-time.After(10 * time.Millisecond) {
		fields, err := redis.StringMap(conn.Do("SENTINEL", "MASTER", "mymaster"))
		if err == nil && fields["flags"] == "master" && fields["role-reported"] == "master" &&
			fields["num-other-sentinels"] == "0" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the Sentinel does not reach the master: %v, %v", fields, err)
		}
	}
	return s
}

// startSentinel starts a Sentinel that watches a master as the page's user, and returns its address.
func startSentinel(t *testing.T, master string) string {
	t.Helper()
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	host, port, _ := strings.Cut(master, ":")
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\nsentinel monitor mymaster %s %s 1\nsentinel auth-user mymaster "+
		"sentinel\n"+
		"sentinel auth-pass mymaster sentinel-password\n", strings.TrimPrefix(addr, "127.0.0.1:"), host, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	proc, err := childproc.Start(exec.Command(program, file, "--sentinel"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proc.Kill)
	for deadline := time.Now().Add(60 * time.Second); ; <-time.After(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return addr
		}
		if time.Now().After(deadline) || !proc.Running() {
			t.Fatalf("the Sentinel does not answer: %v\n%s", err, proc.Output())
		}
	}
}

// setUsers runs ACL commands on all servers, for the queue of this site.
func (s *site) setUsers(t *testing.T, rules [][]string) {
	t.Helper()
	for _, rule := range rules {
		args := make([]any, len(rule))
		for i, word := range rule {
			if strings.HasPrefix(word, "~mail") || strings.HasPrefix(word, "&mail") {
				word = word[:1] + s.queue + word[len("~mail"):]
			}
			args[i] = word
		}
		for _, server := range s.servers {
			server.Do(t, "ACL", args...)
		}
	}
}

// move calls during while the slot of the queue, which is empty, is migrating, if it moves at all.
func (s *site) move(t *testing.T, during func()) {
	t.Helper()
	if s.to == nil {
		during()
		return
	}
	slot := s.at.Do(t, "CLUSTER", "KEYSLOT", s.queue)
	s.to.Do(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", s.at.Do(t, "CLUSTER", "MYID"))
	s.at.Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", s.to.Do(t, "CLUSTER", "MYID"))
	over := make(chan struct{})
	go func() {
		defer close(over)
		during()
	}()
	// The node that has the slot redirects the script, and the next one refuses it until it owns the slot, because some
	// of its keys are missing.
	for refused := false; !refused; {
		info, err := redis.String(s.to.Do(t, "INFO", "errorstats"), nil)
		refused = err == nil && strings.Contains(info, "errorstat_TRYAGAIN")
		select {
		case <-over:
			t.Fatal("the call did not wait for the slot")
		case <-time.After(2 * time.Millisecond):
		}
	}
	for _, node := range []*redistest.Server{s.to, s.at} {
		node.Do(t, "CLUSTER", "SETSLOT", slot, "NODE", s.to.Do(t, "CLUSTER", "MYID"))
	}
	<-over
	s.at = s.to
}

func (s *site) dialAs(t *testing.T, user string) *delayed.Store {
	t.Helper()
	rdb, err := s.dial(fmt.Sprintf(s.url, user+":"+user+"-password"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// try lets a user send one command to the server that has the queue.
func (s *site) try(t *testing.T, user string, cmd []any) error {
	t.Helper()
	conn := s.at.Dial(t, redis.DialUsername(user), redis.DialPassword(user+"-password"))
	_, err := conn.Do(cmd[0].(string), cmd[1:]...) //nolint:errcheck // a literal
	return err
}

// refusals returns what the servers have refused, and to which user.
func (s *site) refusals(t *testing.T) (lines []string) {
	t.Helper()
	for _, server := range s.servers {
		entries, err := redis.Values(server.Do(t, "ACL", "LOG"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			values, err := redis.Values(e, nil)
			if err != nil {
				t.Fatal(err)
			}
			fields := map[string]string{}
			for i := 0; i+1 < len(values); i += 2 {
				fields[fmt.Sprintf("%s", values[i])] = fmt.Sprintf("%s", values[i+1])
			}
			lines = append(lines, fields["username"]+": "+fields["reason"]+" "+fields["object"])
		}
	}
	return lines
}
