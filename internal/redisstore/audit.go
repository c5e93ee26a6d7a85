package redisstore

import (
	"context"

	"github.com/gomodule/redigo/redis"
)

// maxAudit bounds the entries of an audit list.
const maxAudit = 10_000

// Note adds an entry to the audit list, the latest first.
func (r *Registry) Note(ctx context.Context, entry []byte) error {
	_, err := evalOn(ctx, r.src, scriptAudit, []string{r.prefix + auditName}, []any{entry, maxAudit})
	return err
}

// Noted returns entries of the audit list, the latest first, after skipping some.
func (r *Registry) Noted(ctx context.Context, skip, n int) ([][]byte, error) {
	key := r.prefix + auditName
	conn, err := Connect(ctx, r.src, key)
	if err != nil {
		return nil, ConnError(err)
	}
	defer conn.Close()
	return redis.ByteSlices(do(ctx, conn, CallTimeout, "LRANGE", key, skip, skip+n-1))
}
