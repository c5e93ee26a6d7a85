package rediscluster_test

import (
	"fmt"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/rediscluster"
)

func ExampleDial() {
	rdb, err := rediscluster.Dial("redis://user:password@a:6379,b:6379,c:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rdb.Close()

	// The braces keep the keys of the queue in one hash slot.
	q := delayed.NewQueue("{mail}", rdb)
	fmt.Println(q.Name())
	// Output: {mail}
}
