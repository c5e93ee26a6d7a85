package embedded

import (
	"net"
	"testing"
	"time"
)

// TestPeersAreForgotten looks for what is kept of connections that have ended.
func TestPeersAreForgotten(t *testing.T) {
	srv, err := Start(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	known := func() (n int) {
		srv.peers.Range(func(any, any) bool { n++; return true })
		return n
	}
	for range 10 {
		conn, err := net.Dial("tcp", srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		reply := make([]byte, len("+PONG\r\n"))
		if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(reply); err != nil || string(reply) != "+PONG\r\n" {
			t.Fatalf("PING: %q, %v", reply, err)
		}
		if known() == 0 {
			t.Fatal("the connection is not known")
		}
		conn.Close()
	}
	for deadline := time.Now().Add(10 * time.Second); known() > 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are still known 10 s after their end", known())
		}
	}
}
