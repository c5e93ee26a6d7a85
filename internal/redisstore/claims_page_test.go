package redisstore

import (
	"maps"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// claimsPage reads claims: all of them if there are at most n, else some n.
func claimsPage(s *Store, from ClaimHash, n int) (page []Claimed, total int, err error) {
	tokens, total, err := s.ClaimTokens(bg, from, n)
	for len(tokens) > 0 && err == nil {
		var some []Claimed
		var read int
		some, read, err = s.Claims(bg, from, tokens)
		page, tokens = append(page, some...), tokens[read:]
	}
	return page, total, err
}

// TestClaimsPage reads claims page by page until none is left, also from hashes that are too large for Redis's compact
// form.
func TestClaimsPage(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	conn := server.Dial(t)
	redistest.Seed(t, conn, name, manyHeld)
	s := NewStore(dialled(t, server.URL()), "", name)
	hash := s.keys.processing + "w"
	for left := maps.Clone(manyClaims); len(left) > 0; {
		page, total, err := claimsPage(s, s.ClaimsOf("w"), 200)
		if err != nil || total != len(left) || len(page) != min(200, total) {
			t.Fatalf("expected %d of %d claims, found %d of %d, %v", min(200, len(left)), len(left), len(page), total,
				err)
		}
		for _, c := range page {
			if message, ok := left[c.Token]; !ok || message != string(c.Message) {
				t.Errorf("claim %s: expected %q, found %q", c.Token, message, c.Message)
			}
			delete(left, c.Token)
			server.Do(t, "HDEL", hash, c.Token)
		}
	}
	if page, total, err := claimsPage(s, s.ClaimsOf("w"), 200); err != nil || total != 0 || len(page) > 0 {
		t.Errorf("no claims: found %d of %d, %v", len(page), total, err)
	}
}
