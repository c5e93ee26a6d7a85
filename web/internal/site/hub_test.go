package site

import (
	"context"
	"fmt"
	"testing"
)

// TestSlowClient drops a client that does not take its texts, and no other.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	const behind = 10
	h := NewHub(t.Context(), 1, 2, behind)
	started := make(chan *Source, 1)
	run := func(ctx context.Context, s *Source) {
		started <- s
		<-ctx.Done()
	}
	slow, _ := h.Join("key", nil, run)
	quick, leave := h.Join("key", nil, run)
	if other, _ := h.Join("key", nil, run); other != nil {
		t.Error("there are more clients than may be")
	}
	s := <-started
	for i := range behind + 1 {
		s.Send(func(*Client) []byte { return fmt.Append(nil, i) })
		if got := string(<-quick.texts); got != fmt.Sprint(i) {
			t.Fatalf("the quick client gets %s, expected %d", got, i)
		}
	}
	n := 0
	for range slow.texts { // it is closed
		n++
	}
	if _, clients := h.Len(); n != behind || slow.why == "" || clients != 1 {
		t.Errorf("the slow client has got %d texts, and the reason %q; %d clients remain", n, slow.why, clients)
	}
	leave()
	if sources, clients := h.Len(); sources != 0 || clients != 0 {
		t.Errorf("%d sources and %d clients remain", sources, clients)
	}
	h.Wait()
}
