// Command kiosk runs no worker at all.
package main

import (
	"fmt"
	"os"

	"github.com/godelayed/delayed"

	"example.com/app/blind/nearmisses/loans"
)

func main() {
	rdb, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ref, err := delayed.NewQueue("desk", rdb).Delay(loans.Return, len(os.Args), 1) // right: nothing runs here
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(ref.ID())
}
