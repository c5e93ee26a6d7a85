package engine

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
)

// Tasks that cannot run here end otherwise; the worker still knows every claim of the batch by its token.
func TestReceiveKeepsTheBatchAsItWasClaimed(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	w, err := NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register([]*Function{f}, nil); err != nil {
		t.Fatal(err)
	}
	l := w.lanes[0]
	if _, err := redis.String(b.Conn.Do("SET", b.Name+"_worker:"+w.ID(), "v", "PX", 60000)); err != nil {
		t.Fatal(err)
	}
	b.Do("RPUSH", b.Name, "no message", Call(f, 1).msg.Append(nil))
	claims, _, err := l.Claim(t.Context(), redisstore.ClaimCall{Most: 2}, nil)
	if err != nil || len(claims) != 2 {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	first, second := claims[0], claims[1]
	w.receiver.Receive(t.Context(), claims)
	if l.Find(first.Token) != first || l.Find(second.Token) != second {
		t.Errorf("tokens %s and %s name other claims now", first.Token, second.Token)
	}
}
