// The program prints what funcpath makes of the functions of a main package and of a package in a directory with a dot.
package main

import (
	"fmt"

	"github.com/godelayed/delayed/internal/funcpath"
	"github.com/godelayed/delayed/internal/funcpath/testdata/program/mail.v3"
)

type job struct{ n int }

func (j *job) run() { j.n++ }

func hello(string) {}

func main() {
	for _, fn := range []any{
		hello, (*job).run, mail.Welcome, (*mail.Mailer).Send, (*mail.Mailer).Sent, mail.Mailer.Sent,
		mail.Twice[int], mail.Later(), new(mail.Mailer).Send, func() {},
	} {
		f, err := funcpath.Of(fn)
		if err != nil {
			fmt.Println(err)
			continue
		}
		switch f.Kind {
		case funcpath.Plain, funcpath.Method:
			fmt.Println(f.Kind, f.Path, f.Main)
		default:
			fmt.Println(f.Kind)
		}
	}
}
