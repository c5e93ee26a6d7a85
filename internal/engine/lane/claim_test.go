package lane

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
	l := &Lane{}
	before := time.Now()
	b := NewBatch(l, 12, []any{[]byte("a"), []byte("b")})
	if b.Number != 12 || b.open != 2 || b.Unsent != 2 || len(b.Claims) != 2 || b.At.Before(before) {
		t.Fatalf("batch %+v", b)
	}
	for i, want := range []string{"a", "b"} {
		c := b.Claims[i]
		if c.Lane != l || c.Batch != b || c.Token != fmt.Sprint("12-", i+1) || string(c.Raw) != want || c.settled ||
			c.Lost.Load() {
			t.Errorf("claim %d: lane %p, batch %p, token %q, message %q", i+1, c.Lane, c.Batch, c.Token, c.Raw)
		}
	}
	if b := NewBatch(l, 13, nil); b.open != 0 || b.Unsent != 0 || len(b.Claims) != 0 {
		t.Errorf("an empty batch: %+v", b)
	}
}
