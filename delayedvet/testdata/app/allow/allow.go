// Package allow says why what is found is right.
package allow

import (
	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

func allowed(q *delayed.Queue) (err error) {
	_, err = q.Delay(mail.Level, 300) //delayed:allow shows the error
	//delayed:allow shows the error
	_, err = q.Delay(mail.Level, 300)
	_, err = q.Delay(
		mail.Level,
		300,
	) //delayed:allow shows the error
	_, err = q.Delay(mail.Level, 300)      //delayed:allow // want `expected uint8, found int 300` `expected a reason behind //delayed:allow, found none; say why this is right here`
	_, err = q.Delay(mail.Level, 300)      //delayed:allowed // want `expected uint8, found int 300`
	_, err = q.Delay(mail.Welcome, "x", 1) //delayed:allow one of two // want `argument 2: expected string, found int 1`
	return err
}
