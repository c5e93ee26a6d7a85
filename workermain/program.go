package workermain

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
)

// program is one run of a worker program.
type program struct {
	setup    func(context.Context, *delayed.Worker) error
	serve    func(*http.ServeMux, *delayed.Store) error
	settings *settings
	log      logrus.FieldLogger
	rdb      *delayed.Store
	worker   *delayed.Worker
	started  atomic.Pointer[time.Time] // when the worker began to run; nil: not yet
}

// child makes the worker of a child process.
func (p *program) child() (*delayed.Worker, error) {
	if p.setup != nil {
		if err := p.setup(context.Background(), p.worker); err != nil {
			return nil, fmt.Errorf("setting up: %w", err)
		}
	}
	return p.worker, nil
}

// fail logs why the program does not start.
func (p *program) fail(err error) int {
	for _, e := range flatten(err) {
		p.log.WithError(e).Error("worker does not start")
	}
	return exitFailed
}
