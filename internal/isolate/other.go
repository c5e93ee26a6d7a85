//go:build !linux && !darwin

package isolate

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/godelayed/delayed/internal/loop"
)

// Supported reports that this system has no isolation.
const Supported = false

// ErrClosed reports that the pool was closed.
var ErrClosed = errors.New("delayed: no child processes on this system")

// The types that other systems have.
type (
	Config struct {
		Args, Env []string
		Limits    Limits
		MaxJobs   int
		Idle      time.Duration
		Ahead     int
		Cause     func(context.Context) byte
		Output    io.Writer
		Log       loop.Journal
	}
	Job struct {
		Context context.Context
		Body    []byte
		Report  func(body []byte) error
		Answer  func(verdict []byte)
	}
	Server struct {
		Setup  func() error
		Run    func(Job)
		Cause  func(byte) error
		Stacks func() string
	}
	Patience struct{ Start, Grace, Rest time.Duration }
	Pool     struct{}
)

func NewPool(Config) *Pool { return &Pool{} }
func (*Pool) Start(bool)   {}
func (*Pool) Close()       {}
func IsChild() bool        { return false }
func Serve(Server)         { panic("delayed: no child processes on this system") }

func (*Pool) Run(context.Context, []byte, func([]byte), func() Patience) ([]byte, error) {
	return nil, ErrClosed
}
