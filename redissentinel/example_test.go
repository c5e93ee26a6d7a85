package redissentinel_test

import (
	"context"
	"log"

	"github.com/godelayed/delayed/redissentinel"
)

func ExampleDial() {
	rdb, err := redissentinel.Dial("redis://user:password@s1,s2,s3/0?master=mymaster&sentinel_password=secret")
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	if err := rdb.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
}
