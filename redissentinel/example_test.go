package redissentinel_test

import (
	"fmt"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/redissentinel"
)

func ExampleDial() {
	rdb, err := redissentinel.Dial("redis://user:password@s1,s2,s3/0?master=mymaster&sentinel_password=secret")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rdb.Close()

	q := delayed.NewQueue("mail", rdb)
	fmt.Println(q.Name())
	// Output: mail
}
