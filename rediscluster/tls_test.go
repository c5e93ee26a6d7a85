//go:build unix

package rediscluster

import (
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestPrivateAuthority connects by TLS to a cluster of one node, whose certificate is one of a private authority and
// which asks for one.
func TestPrivateAuthority(t *testing.T) {
	t.Parallel()
	certs := redistest.NewTLS(t)
	node, addr := certs.Start(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--tls-cluster",
		"yes")
	var slots []any
	for slot := range 16384 {
		slots = append(slots, slot)
	}
	node.Do(t, "CLUSTER", append([]any{"ADDSLOTS"}, slots...)...)
	rdb, err := Dial("rediss://" + addr + "?pool_size=3&dial_timeout=3s&" + certs.Query().Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	eventually(t, "a task is enqueued", func() bool {
		_, err = delayed.NewQueue("{mail}", rdb).Enqueue(t.Context(), delayed.NewGoTask("example.com/app/mail.Welcome"))
		return err == nil
	})
	for _, without := range []string{"ca", "server_name"} {
		src := open(t, "rediss://"+addr+"?"+certs.Query(without).Encode())
		if _, err := src.Conn(t.Context(), "k"); err == nil {
			t.Errorf("without %s: expected an error", without)
		}
	}
	if src := open(t, "redis://a?pool_size=3&dial_timeout=3s"); src.PoolSize() != 3 ||
		src.limits.DialTimeout.Seconds() != 3 {
		t.Errorf("expected limits of 3, found %+v", src.limits)
	}
}
