package delayed

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/godelayed/delayed/internal/redisstore"
)

func TestTokensOfABatch(t *testing.T) {
	for _, number := range []uint64{0, 1, 9, 10, math.MaxUint64} {
		for _, n := range []int{0, 1, 9, 10, 11, 99, 100, redisstore.MaxClaim} {
			var want []string
			for i := range n {
				want = append(want, fmt.Sprintf("%d-%d", number, i+1))
			}
			got := slices.Collect(redisstore.TokensOf(number, n))
			if !slices.Equal(got, want) {
				t.Fatalf("%d tokens of batch %d:\n%q\nexpected\n%q", n, number, got, want)
			}
			for i, token := range got {
				if parsed, place, ok := parseToken(token); !ok || parsed != number || place != i+1 {
					t.Fatalf("%q is claim %d of batch %d, %v: expected %d of %d", token, place, parsed, ok, i+1, number)
				}
			}
		}
	}
}

func TestParseTokenOfOthers(t *testing.T) {
	for _, token := range []string{
		"", "-", "7", "7-", "-1", "7-1-1", "7:1", "x-1", "7-x", "-7-1", "7.0-1", " 7-1",
		"18446744073709551616-1",
	} {
		if number, place, ok := parseToken(token); ok {
			t.Errorf("%q is claim %d of batch %d, expected no token", token, place, number)
		}
	}
}

// The collector's share of a worker's time grows with what a task allocates, and half of that is its claim.
func TestClaimIsSmall(t *testing.T) {
	if got := unsafe.Sizeof(claim{}); got > 288 {
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
