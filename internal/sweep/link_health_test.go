package sweep

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLinkHealthBreaksWhenACallIsSlow(t *testing.T) {
	h := NewLinkHealth(time.Minute)
	if _, ok := h.UnbrokenSince(); ok {
		t.Error("contact before the first call")
	}
	h.Call()(nil)
	if _, ok := h.UnbrokenSince(); !ok {
		t.Error("no contact after a call")
	}
	h.Call()(errors.New("x"))
	if _, ok := h.UnbrokenSince(); ok {
		t.Error("contact after a failed call")
	}
	h.Call()(nil)
	done := h.Call()
	h.pending[h.next] = time.Now().Add(-time.Minute) // it has been under way for as long as a heartbeat lives
	if _, ok := h.UnbrokenSince(); ok {
		t.Error("contact while a call hangs")
	}
	done(nil)
	if _, ok := h.UnbrokenSince(); !ok {
		t.Error("the start of the call is what done remembers")
	}
	h.slow = -1
	h.Call()(nil)
	if _, ok := h.UnbrokenSince(); ok {
		t.Error("contact after a slow call")
	}
}

// A call that has failed is over: it does not count as one that hangs, however long ago it began.
func TestContactAfterAFailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewLinkHealth(time.Minute)
		h.Call()(errors.New("x"))
		<-time.After(time.Hour)
		h.Call()(nil)
		if since, ok := h.UnbrokenSince(); !ok || !since.Equal(time.Now()) {
			t.Errorf("contact since %v, %t, expected it from the last call on", since, ok)
		}
	})
}
