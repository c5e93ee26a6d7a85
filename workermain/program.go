package workermain

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/signature"
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

// setUp calls Config.Setup.
func (p *program) setUp(ctx context.Context) error {
	if p.setup == nil {
		return nil
	}
	if err := p.setup(ctx, p.worker); err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	return nil
}

// child makes the worker of a child process.
func (p *program) child() (*delayed.Worker, error) {
	return p.worker, p.setUp(context.Background())
}

// fail logs why the program does not start.
func (p *program) fail(err error) int {
	for _, e := range flatten(err) {
		p.log.WithError(e).Error("worker does not start")
	}
	return exitFailed
}

// list prints the registered functions, including those of Setup.
func (p *program) list(out io.Writer) int {
	if err := p.setUp(context.Background()); err != nil {
		return p.fail(err)
	}
	infos := seam.Functions(p.worker).([]function.Info) //nolint:errcheck // by contract
	if err := signature.Write(out, infos); err != nil {
		return p.fail(err)
	}
	return exitClean
}

// timestamps have milliseconds: handlers often take less than a second.
const timestamps = "2006-01-02T15:04:05.000Z07:00"

// logger returns the program's own logger if it has one, else one by the flags that writes to standard error.
func (s *settings) logger() logrus.FieldLogger {
	if s.worker.Logger != nil {
		return s.worker.Logger
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(s.level)
	if s.json {
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: timestamps})
	} else {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: timestamps})
	}
	return log
}
