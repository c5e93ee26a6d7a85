// Worker runs the calls that the program in ../producer delays. With Redis on localhost, or REDIS_URL set, and in
// directory examples:
//
//	go run ./worker -queues mail
//
// Ctrl-C stops it; go run ./worker -help lists its flags.
package main

import (
	"github.com/godelayed/delayed/examples/mail"
	"github.com/godelayed/delayed/workermain"
)

func main() {
	workermain.Main(mail.Welcome, mail.Receipt, mail.Digest)
}
