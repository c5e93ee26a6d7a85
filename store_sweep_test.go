package delayed

import (
	"context"

	"github.com/godelayed/delayed/internal/redisstore"
)

// requeue takes a claim from a worker whose heartbeat is gone, as a sweeper does. Its message goes on as renewed.
func (b *bench) requeue(worker string, c redisstore.Claimed, renewed []byte) {
	b.T.Helper()
	s := b.q.store
	action := redisstore.SweepAction{Claimed: c, Kind: "requeue", Renewed: renewed}
	n, _, alive, err := s.Sweep(context.Background(), s.ClaimsOf(worker), redisstore.SweepLimits{},
		[]redisstore.SweepAction{action})
	if n != 1 || alive || err != nil {
		b.T.Fatalf("swept %d, alive %v, %v", n, alive, err)
	}
}
