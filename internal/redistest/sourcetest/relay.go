//go:build unix

package sourcetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// buildStore compiles the store's own tests and returns the program.
func buildStore(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "store.test")
	args := []string{"test", "-vet=off", "-c", "-o", program, "github.com/godelayed/delayed/internal/redisstore"}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %q: %v\n%s", args, err, out)
	}
	return program
}

// testStore runs the store's own table of all scripts. Only that package can call it, so its program gets the address
// of a relay that hands all commands to the source. It reads lua/README.md in ../.., which is where the folders of the
// clients have it too.
func testStore(t *testing.T, program string, open Maker) {
	// Every run of the store's tests names its queues alike, so each needs a server of its own.
	addr := relay(t, open(t, redistest.Start(t).Addr(), 100))
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestStore$", "-test.v")
	cmd.Env = append(os.Environ(), "DELAYED_STORE_URL=redis://"+addr)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("--- PASS: TestStore/claim")) {
		t.Fatalf("the table was not run:\n%s", out)
	}
}

// relay serves Redis's protocol over a source, one of its connections for each client, and returns the address.
func relay(t testing.TB, src delayed.Source) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { c.Close() })()
				if err := serve(ctx, c, src); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
					t.Logf("relay: %v", err)
				}
			})
		}
	})
	return l.Addr().String()
}

// serve answers the commands of one client. What came in one request goes out in one.
func serve(ctx context.Context, c net.Conn, src delayed.Source) error {
	conn, err := src.Conn(ctx, "relay")
	if err != nil {
		return err
	}
	defer conn.Close()
	r, w := bufio.NewReaderSize(c, 1<<20), bufio.NewWriter(c)
	for {
		sent := 0
		for sent == 0 || r.Buffered() > 0 {
			args, err := command(r)
			if err != nil {
				return err
			}
			if err := conn.Send(fmt.Sprint(args[0]), args[1:]...); err != nil {
				return err
			}
			sent++
		}
		if err := conn.Flush(); err != nil {
			return err
		}
		for range sent {
			reply, err := redis.ReceiveContext(conn, ctx)
			var answer redis.Error
			if errors.As(err, &answer) {
				reply, err = answer, nil
			}
			if err != nil {
				return err
			}
			write(w, reply)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

// command reads one command.
func command(r *bufio.Reader) ([]any, error) {
	n, err := length(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]any, n)
	for i := range args {
		size, err := length(r, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		if args[i] = text[:size]; i == 0 {
			args[i] = string(text[:size])
		}
	}
	return args, nil
}

func length(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("found %q, expected %q", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// write writes a reply of redigo in RESP2.
func write(w *bufio.Writer, reply any) {
	switch r := reply.(type) {
	case nil:
		fmt.Fprint(w, "$-1\r\n")
	case int64:
		fmt.Fprintf(w, ":%d\r\n", r)
	case string:
		fmt.Fprintf(w, "+%s\r\n", r)
	case []byte:
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(r), r)
	case redis.Error:
		fmt.Fprintf(w, "-%s\r\n", string(r))
	case []any:
		fmt.Fprintf(w, "*%d\r\n", len(r))
		for _, e := range r {
			write(w, e)
		}
	default:
		fmt.Fprintf(w, "-ERR the source has returned a %T\r\n", reply)
	}
}
