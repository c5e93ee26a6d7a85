package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// Redis searches a hash of few short fields from the start for each of them. So the hash of a large claim becomes a
// table, however small its messages are, and the field that made it one does not remain.
func TestLargeClaimMakesATable(t *testing.T) {
	for _, tt := range []struct {
		n    int
		want []string // encodings; Redis 6.2 calls the compact one ziplist
	}{{5, []string{"listpack", "ziplist"}}, {64, []string{"hashtable"}}, {200, []string{"hashtable"}}} {
		t.Run(strconv.Itoa(tt.n), func(t *testing.T) {
			b := redistest.NewBench(t, redistest.Shared(t))
			s := NewStore(dialled(t, b.Server.URL()), "", b.Name)
			b.Do("SET", b.Name+"_worker:w", "v")
			for i := range tt.n {
				b.Do("RPUSH", b.Name, fmt.Sprint("m", i+1))
			}
			got, err := s.Claim(bg, ClaimCall{Worker: "w", Batch: 7, Most: tt.n})
			if err != nil || len(got.Messages) != tt.n {
				t.Fatalf("%d messages, %v", len(got.Messages), err)
			}
			held := b.Hash("_processing:w")
			for i := range tt.n {
				if token, want := fmt.Sprint("7-", i+1), fmt.Sprint("m", i+1); held[token] != want ||
					fmt.Sprintf("%s", got.Messages[i]) != want {
					t.Errorf("%s is %q in Redis and %q here, expected %q", token, held[token], got.Messages[i], want)
				}
			}
			if len(held) != tt.n {
				t.Errorf("%d fields, expected %d", len(held), tt.n)
			}
			if encoding, _ := redis.String(b.Do("OBJECT", "ENCODING", b.Name+"_processing:w"),
				nil); !slices.Contains(tt.want, encoding) {
				t.Errorf("encoding %q, expected one of %q", encoding, tt.want)
			}
		})
	}
}
