package sweep

import (
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// A note "alone" of a claim that has ended says nothing: the worker removes it only before it starts another suspect's
// neighbours if that claim is still open. The deaths of the tasks in hand count as without it.
func TestStaleNoteHidesNoDeath(t *testing.T) {
	b := newBench(t)
	id := b.deadWorker(text(extended("id", 1)))
	b.Do("HSET", b.Name+"_claims:"+id, redisstore.MarkAlone, "7-1") // has ended: it is not among the claims
	b.sweptDry(b.group(time.Millisecond, time.Hour))
	if msg := parse(t, b.List("")[0]); msg.Meta.Deaths != 1 || msg.Meta.Extra != nil {
		t.Errorf("%+v, expected one death, not alone", msg.Meta)
	}
}
