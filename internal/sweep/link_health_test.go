package sweep

import (
	"errors"
	"testing"
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
