package staleconn

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// identity is what a server reports of itself. An empty field is unknown.
type identity struct {
	role string // master or slave
	// data is the server's replication id, which a replica has from its master. It changes when another server becomes
	// the master, and when a master starts anew.
	data string
}

func (id identity) String() string {
	return fmt.Sprintf("a %s with replication id %s", cmp.Or(id.role, "server"), cmp.Or(id.data, "unknown"))
}

// differs reports whether both cannot be the same server in the same role.
func (id identity) differs(other identity) bool {
	return id.role != "" && other.role != "" && id.role != other.role ||
		id.data != "" && other.data != "" && id.data != other.data
}

// update returns what is known after a server has said who it is.
func (id identity) update(now identity) identity {
	return identity{cmp.Or(now.role, id.role), cmp.Or(now.data, id.data)}
}

// ask asks a server who it is. It returns an error only if the connection fails: a server that refuses to say is not
// asked again.
func (w *Watch) ask(ctx context.Context, conn redis.Conn) (id identity, err error) {
	w.asked.Store(time.Now().UnixNano())
	if w.mute.Load() {
		return id, nil
	}
	info, err := redis.String(answered(redis.DoContext(conn, ctx, "INFO", "replication")))
	if id = parseReplication(info); id.role == "" && err == nil {
		var reply any
		if reply, err = answered(redis.DoContext(conn, ctx, "ROLE")); err == nil {
			if parts, ok := reply.([]any); ok && len(parts) > 0 {
				id.role, _ = redis.String(parts[0], nil)
			}
		}
	}
	if err == nil && id == (identity{}) {
		w.mute.Store(true)
	}
	return id, err
}

// answered makes an empty reply of an error that the server has answered.
func answered(reply any, err error) (any, error) {
	var refused redis.Error
	if errors.As(err, &refused) {
		return "", nil
	}
	return reply, err
}

func parseReplication(info string) (id identity) {
	lines := bufio.NewScanner(strings.NewReader(info))
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ":"); name {
		case "role":
			id.role = strings.TrimSpace(value)
		case "master_replid":
			id.data = strings.TrimSpace(value)
		}
	}
	return id
}
