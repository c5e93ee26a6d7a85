package api

import (
	"testing"

	"github.com/godelayed/delayed/delayedtest"

	"example.com/app/blind/mistakes/mail"
	"example.com/app/blind/mistakes/search"
)

func TestAnnounce(t *testing.T) {
	q := delayedtest.NewQueue(t)
	c := &Catalog{Queue: q, Index: "events"}
	if err := c.Announce(t.Context(), []Order{{ID: 1, Lang: "en"}}); err != nil {
		t.Fatal(err)
	}
	delayedtest.RequireEnqueued(t, q, mail.Confirm, "1", "en")       // want `mail.Confirm: argument 1: expected int64, found string`
	delayedtest.RefuteEnqueued(t, q, mail.Confirm, 2)                // want `mail.Confirm: expected 2 arguments .int64, string., found 1`
	delayedtest.RequireCount(t, q, 0, search.Boost, 1, int64(5), "") // want `search.Boost: expected 2 arguments .int64, int., found 3`
}
