package rediscluster_test

import (
	"context"
	"log"

	"github.com/godelayed/delayed/rediscluster"
)

func ExampleDial() {
	rdb, err := rediscluster.Dial("redis://user:password@a:6379,b:6379,c:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	if err := rdb.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	// The braces keep the keys of a queue in one hash slot: delayed.NewQueue("{mail}", rdb).
}
