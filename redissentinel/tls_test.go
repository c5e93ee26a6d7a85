//go:build unix

package redissentinel

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestPrivateAuthority connects by TLS to a Sentinel and a master whose certificates are those of a private authority,
// and which ask for one.
func TestPrivateAuthority(t *testing.T) {
	t.Parallel()
	certs := redistest.NewTLS(t)
	_, master := certs.Start(t)
	addr := startTLSSentinel(t, certs, master)
	rdb, err := Dial("rediss://" + addr + "?master=m&pool_size=3&dial_timeout=3s&" + certs.Query().Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	eventually(t, "a task is enqueued", func() bool {
		_, err = delayed.NewQueue("mail", rdb).Enqueue(t.Context(), delayed.NewGoTask("example.com/app/mail.Welcome"))
		return err == nil
	})
	for _, without := range []string{"ca", "server_name"} {
		src := open(t, "rediss://"+addr+"?master=m&"+certs.Query(without).Encode())
		if _, err := src.Conn(t.Context(), "k"); err == nil {
			t.Errorf("without %s: expected an error", without)
		}
	}
	if src := open(t, "redis://a?master=m&pool_size=3&dial_timeout=3s"); src.PoolSize() != 3 ||
		src.limits.DialTimeout.Seconds() != 3 {
		t.Errorf("expected limits of 3, found %+v", src.limits)
	}
}

// startTLSSentinel starts a Sentinel that serves and asks by TLS only, and returns its address.
func startTLSSentinel(t *testing.T, certs *redistest.TLS, master string) (addr string) {
	t.Helper()
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	host, port, _ := strings.Cut(addr, ":")
	masterHost, masterPort, _ := strings.Cut(master, ":")
	lines := []string{"bind " + host, "port 0", "sentinel monitor m " + masterHost + " " + masterPort + " 1"}
	args := certs.Args(port)
	for i := 0; i < len(args); i += 2 {
		lines = append(lines, strings.TrimPrefix(args[i], "--")+" "+args[i+1])
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	proc, err := childproc.Start(exec.Command(program, file, "--sentinel"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proc.Kill)
	return addr
}
