package embedded_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed/embedded"
)

func Example() {
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	// Queues and workers take srv.Redis(); other processes dial srv.URL().
	fmt.Println(srv.Redis().Ping(context.Background()))
	// Output: <nil>
}

func ExampleServer_Advance() {
	srv, err := embedded.Start(embedded.Config{Virtual: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	before := srv.Now()
	srv.Advance(24 * time.Hour) // what lives for a day is gone now
	fmt.Println(srv.Now().Sub(before))
	// Output: 24h0m0s
}
