// Package site has what the pages and the API of a dashboard share: who may do what, what was read a moment ago,
// actions on tasks, and jobs.
package site

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/auth"
)

// Site is what all requests share.
type Site struct {
	Config Config
	Redis  *delayed.Store
	Ctx    context.Context //nolint:containedctx // it ends with the handler, and with it all jobs and live pages
	Auth   *auth.Auth
	Jobs   *jobs
	Fast   *cache
	Slow   *cache // of what takes many reads

	AskAgain time.Duration // how often live pages and streams of events ask whether their user still has access
}

// Request is one request of a user who may make it. Live pages make it once for many users with the same rights.
type Request struct {
	Ctx  context.Context //nolint:containedctx // that of the request
	Ins  *inspect.Inspector
	User auth.User
	Args url.Values // of the URL, or of the form that was posted
	Path string     // of the URL, without the slash
}

// New returns what all requests of a dashboard share.
func New(ctx context.Context, rdb *delayed.Store, cfg Config) (*Site, error) {
	s := &Site{
		Config: cfg, Redis: rdb, Ctx: ctx, Auth: auth.New(cfg.Authorize, cfg.Tokens), Jobs: &jobs{},
		Fast: &cache{Life: min(time.Second, cfg.Refresh/2)}, Slow: &cache{Life: min(10*time.Second, 5*cfg.Refresh)},
		AskAgain: askAgain,
	}
	_, err := s.inspector(auth.User{Name: "web"}) // fails if rdb is nil or zero
	return s, err
}

// NewRequest returns a request of a user.
func (s *Site) NewRequest(ctx context.Context, user auth.User, path string, args url.Values) (*Request, error) {
	ins, err := s.inspector(user)
	if err != nil {
		return nil, err
	}
	return &Request{Ctx: ctx, Ins: ins, User: user, Args: args, Path: path}, nil
}

// inspector returns an inspector that shows what a user may see, and has the user's name in the audit log.
func (s *Site) inspector(user auth.User) (*inspect.Inspector, error) {
	redact := s.Config.Redact
	if s.Hidden(user) {
		redact = func(c *inspect.Contents) {
			if s.Config.Redact != nil {
				s.Config.Redact(c)
			}
			hide(c)
		}
	}
	return inspect.New(s.Redis, inspect.Config{Redact: redact, Actor: user.Name})
}

// Hidden reports whether arguments are hidden from a user.
func (s *Site) Hidden(user auth.User) bool {
	return s.Config.HideArguments && user.Role < auth.Operator
}

// May reports whether a user may do what needs a role. Where it only shows something, Viewer is enough.
func (s *Site) May(user auth.User, role auth.Role) bool {
	return user.Role >= role && (role == auth.Viewer || !s.Config.ReadOnly)
}

// Allow returns an error if a user may not do what needs a role.
func (s *Site) Allow(user auth.User, role auth.Role) error {
	switch {
	case s.May(user, role):
		return nil
	case user.Role >= role:
		return Forbidden("this dashboard changes nothing: it is read-only")
	}
	return Forbidden(fmt.Sprintf("your role, %v, does not allow this: expected %v", user.Role, role))
}

// hide removes what may be secret.
func hide(c *inspect.Contents) {
	c.Args, c.Kwargs, c.Headers, c.Result = nil, nil, nil, nil
	c.Error, c.Stack, c.Failures = "", "", nil
	c.Call = inspect.ShortName(inspect.Printable(c.Function)) + "(…)"
}

// Failed reports an error to Config.OnError.
func (s *Site) Failed(r *http.Request, err error) {
	if s.Config.OnError != nil {
		s.Config.OnError(r, err)
	}
}

// Config is what the user of package web has configured, with the defaults in it. See Config there.
type Config struct {
	Authorize     func(*http.Request) (auth.User, error)
	Tokens        []auth.Token
	ReadOnly      bool
	HideArguments bool
	Redact        func(*inspect.Contents)
	Title         string
	Refresh       time.Duration
	APIRate       float64
	OnError       func(*http.Request, error)
}

// Check completes a Config, or returns what is wrong with it.
func (c *Config) Check() error {
	if c.Authorize == nil && len(c.Tokens) == 0 {
		return errors.New("web: no authentication configured: set Config.Authorize or Config.Tokens")
	}
	if c.Refresh == 0 {
		c.Refresh = 2 * time.Second
	}
	if c.Refresh < 100*time.Millisecond {
		return fmt.Errorf("web: Config.Refresh: expected at least 100 ms, found %v", c.Refresh)
	}
	if c.APIRate == 0 {
		c.APIRate = 50
	}
	names := map[string]bool{}
	for i, t := range c.Tokens {
		switch {
		case t.Name == "" || t.Role < auth.Viewer || t.Role > auth.Admin:
			return fmt.Errorf("web: Config.Tokens[%d]: expected a name and a role, found %q and %v", i, t.Name, t.Role)
		case len(t.Secret) < auth.MinSecret:
			return fmt.Errorf("web: Config.Tokens[%d]: expected a secret of at least %d bytes, found %d", i,
				auth.MinSecret, len(t.Secret))
		case names[t.Name]:
			return fmt.Errorf("web: Config.Tokens[%d]: expected names that differ, found %q twice", i, t.Name)
		}
		names[t.Name] = true
	}
	return nil
}

// Queues returns all queues, as they were a moment ago.
func (s *Site) Queues(q *Request) ([]inspect.Queue, error) {
	return Read(q.Ctx, s.Fast, "queues", func(ctx context.Context) ([]inspect.Queue, error) {
		return q.Ins.Queues(ctx)
	})
}

// Diagnosis returns what is wrong with the given queues, or with all and with Redis, as it was lately.
func (s *Site) Diagnosis(q *Request, queues ...string) (inspect.Diagnosis, error) {
	key := fmt.Sprint("diagnosis ", s.Hidden(q.User), queues)
	return Read(q.Ctx, s.Slow, key, func(ctx context.Context) (inspect.Diagnosis, error) {
		return q.Ins.Diagnose(ctx, queues...)
	})
}

// CheckName returns an error if a text cannot be the name of a queue.
func (s *Site) CheckName(name string) error {
	if _, err := delayed.OpenQueue(name, s.Redis, delayed.QueueConfig{}); err != nil {
		return Bad(document.ErrorText(err.Error()))
	}
	return nil
}

// MaxSelected bounds the tasks that one form is about. More are a job.
const MaxSelected = 1000

// MaxWeight is the largest weight that Inspector.SetWeight takes.
const MaxWeight = 1000
