// Command delayed shows what task queues hold and what their workers do, and acts on tasks, queues, workers and
// periodic entries:
//
//	go install github.com/godelayed/delayed/cmd/delayed@latest
//	delayed queues
//
// docs/CLI.md lists its commands.
package main

import (
	"os"

	"github.com/godelayed/delayed/cmd/delayed/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.Process())) }
