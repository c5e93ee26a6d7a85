package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
)

// openRedis returns a handle on the Redis of REDIS_URL, or on an embedded server, and what to do at the end: delete
// what is left in Redis, or stop the server.
func openRedis(ctx context.Context) (handle *delayed.Store, cleanUp func(), err error) {
	url := os.Getenv("REDIS_URL")
	if url == "" {
		fmt.Println("REDIS_URL is not set: using the embedded server, which keeps everything in memory.")
		server, err := embedded.Start(embedded.Config{})
		if err != nil {
			return nil, nil, err
		}
		return server.Redis(), func() { server.Close() }, nil
	}

	fmt.Println("Using the Redis of REDIS_URL. The keys of this program are deleted at the end.")
	if handle, err = delayed.Dial(url); err != nil {
		return nil, nil, err
	}
	if err := handle.Ping(ctx); err != nil {
		handle.Close()
		return nil, nil, err
	}
	prefix := "dashboard-" + rand.Text()[:8] + ":" // a new one, so that nobody else has these queues
	return handle.WithPrefix(prefix), func() {
		handle.Close()
		if err := deleteKeys(url, prefix); err != nil {
			fmt.Fprintf(os.Stderr, "dashboard: keys that begin with %s are left in Redis: %v\n", prefix, err)
		}
	}, nil
}

// deleteKeys deletes all keys that begin with a prefix.
func deleteKeys(url, prefix string) error {
	conn, err := redis.DialURL(url, redis.DialConnectTimeout(5*time.Second), redis.DialReadTimeout(5*time.Second))
	if err != nil {
		return err
	}
	defer conn.Close()
	for cursor := "0"; ; {
		page, err := redis.Values(conn.Do("SCAN", cursor, "MATCH", prefix+"*", "COUNT", 1000))
		if err != nil {
			return err
		}
		var keys []any
		if _, err := redis.Scan(page, &cursor, &keys); err != nil {
			return err
		}
		if len(keys) > 0 {
			if _, err := conn.Do("DEL", keys...); err != nil {
				return err
			}
		}
		if cursor == "0" {
			return nil
		}
	}
}
