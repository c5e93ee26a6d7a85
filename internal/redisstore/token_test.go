package redisstore

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestTokensOfABatch(t *testing.T) {
	for _, number := range []uint64{0, 1, 9, 10, math.MaxUint64} {
		for _, n := range []int{0, 1, 9, 10, 11, 99, 100, maxClaim} {
			var want []string
			for i := range n {
				want = append(want, fmt.Sprintf("%d-%d", number, i+1))
			}
			got := slices.Collect(TokensOf(number, n))
			if !slices.Equal(got, want) {
				t.Fatalf("%d tokens of batch %d:\n%q\nexpected\n%q", n, number, got, want)
			}
			for i, token := range got {
				if parsed, place, ok := ParseToken(token); !ok || parsed != number || place != i+1 {
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
		if number, place, ok := ParseToken(token); ok {
			t.Errorf("%q is claim %d of batch %d, expected no token", token, place, number)
		}
	}
}
