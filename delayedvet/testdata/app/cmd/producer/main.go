// Command producer only delays.
package main

import (
	"log"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

func main() {
	rdb, err := delayed.Dial("redis://localhost")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := delayed.NewQueue("mail", rdb).Delay(mail.Level, 1); err != nil {
		log.Fatal(err)
	}
}
