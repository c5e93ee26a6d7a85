package redisstore_test

import (
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/rediscluster"
)

func init() {
	redisstore.DialCluster = func(t testing.TB, url string) redisstore.Source {
		t.Helper()
		rdb, err := rediscluster.Dial(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rdb.Close() })
		src, _, _ := seam.Locate(delayed.NewQueue("{any}", rdb))
		return src.(redisstore.Source) //nolint:errcheck // what Locate returns
	}
}
