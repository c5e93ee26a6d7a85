package redisstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// TestPassingErrorsOfInspect separates a Redis that cannot answer yet, which Run asks again, from one that forbids what
// was asked.
func TestPassingErrorsOfInspect(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("connection reset"), true},
		{redis.Error("LOADING Redis is loading the dataset in memory"), true},
		{fmt.Errorf("from the node: %w", redis.Error("LOADING Redis is loading the dataset in memory")), true},
		{redis.Error("BUSY Redis is busy running a script"), true},
		{redis.Error("MASTERDOWN Link with MASTER is down"), true},
		{redis.Error("CLUSTERDOWN The cluster is down"), true},
		{redis.Error("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		{redis.Error("MOVED 1 127.0.0.1:7000"), true},
		{redis.Error("ASK 1 127.0.0.1:7000"), true},
		{redis.Error("NOAUTH Authentication required."), true},
		{redis.Error("NOPERM this user has no permissions to run the 'info' command"), false},
		{redis.Error("ERR unknown command 'EVAL'"), false},
	} {
		if got := passing(test.err); got != test.want {
			t.Errorf("passing(%v): expected %v, found %v", test.err, test.want, got)
		}
	}
}
