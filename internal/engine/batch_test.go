package engine

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

// The garbage collector's share of a worker's time grows with the memory of each task, half of which is its claim.
func TestClaimIsSmall(t *testing.T) {
	if got := unsafe.Sizeof(Claim{}); got > 288 {
		t.Errorf("a claim has %d bytes, expected at most 288: put what few tasks have behind a pointer", got)
	}
}

func TestNewBatch(t *testing.T) {
	l := &lane{}
	before := time.Now()
	b := newBatch(l, 12, []any{[]byte("a"), []byte("b")})
	if b.number != 12 || b.open != 2 || b.unsent != 2 || len(b.claims) != 2 || b.at.Before(before) {
		t.Fatalf("batch %+v", b)
	}
	for i, want := range []string{"a", "b"} {
		c := b.claims[i]
		if c.lane != l || c.batch != b || c.token != fmt.Sprint("12-", i+1) || string(c.raw) != want || c.settled ||
			c.lost.Load() {
			t.Errorf("claim %d: lane %p, batch %p, token %q, message %q", i+1, c.lane, c.batch, c.token, c.raw)
		}
	}
	if b := newBatch(l, 13, nil); b.open != 0 || b.unsent != 0 || len(b.claims) != 0 {
		t.Errorf("an empty batch: %+v", b)
	}
}
