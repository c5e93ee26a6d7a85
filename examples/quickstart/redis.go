package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
)

// openRedis returns a handle on the Redis of REDIS_URL, or on an embedded server; its URL, for other processes; and
// what to do at the end: delete what a queue has left in Redis, or stop the server.
func openRedis(ctx context.Context) (handle *delayed.Store, url string, cleanUp func(queue string), err error) {
	url = os.Getenv("REDIS_URL")
	if url == "" {
		fmt.Println("REDIS_URL is not set: using the embedded server, which keeps everything in memory.")
		server, err := embedded.Start(embedded.Config{})
		if err != nil {
			return nil, "", nil, err
		}
		return server.Redis(), server.URL(), func(string) { server.Close() }, nil
	}

	fmt.Println("Using the Redis of REDIS_URL. Its keys are deleted at the end.")
	if handle, err = delayed.Dial(url); err != nil {
		return nil, "", nil, err
	}
	if err := handle.Ping(ctx); err != nil {
		handle.Close()
		return nil, "", nil, err
	}
	cleanUp = func(queue string) {
		if err := deleteKeys(url, queue); err != nil {
			fmt.Fprintf(os.Stderr, "quickstart: keys that begin with %s are left in Redis: %v\n", queue, err)
		}
		handle.Close()
	}
	return handle, url, cleanUp, nil
}

// deleteKeys deletes all keys that begin with a queue's name, because counters remain after the last task is done, and
// takes the queue out of the registry of queues.
func deleteKeys(url, queue string) error {
	conn, err := redis.DialURL(url, redis.DialConnectTimeout(5*time.Second), redis.DialReadTimeout(5*time.Second))
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Do("HDEL", "delayed_queues", queue); err != nil {
		return err
	}
	for cursor := "0"; ; {
		page, err := redis.Values(conn.Do("SCAN", cursor, "MATCH", queue+"*", "COUNT", 1000))
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
