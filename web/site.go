package web

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// site is what all requests share.
type site struct {
	cfg   Config
	rdb   *delayed.Store
	ctx   context.Context //nolint:containedctx // it ends with the handler, and with it all jobs and live pages
	auth  *gate
	note  *notices
	jobs  *jobs
	watch *watchers
	fast  *cache
	slow  *cache // of what takes many reads
	pasts pasts

	askAgain time.Duration // how often live pages and streams of events ask whether their user still has access
}

// request is one request of a user who may make it. Live pages make it once for many users with the same rights.
type request struct {
	ctx  context.Context //nolint:containedctx // that of the request
	ins  *inspect.Inspector
	user User
	args url.Values // of the URL, or of the form that was posted
	path string     // of the URL, without the slash
}

// newRequest returns a request of a user.
func (s *site) newRequest(ctx context.Context, user User, path string, args url.Values) (*request, error) {
	ins, err := s.inspector(user)
	if err != nil {
		return nil, err
	}
	return &request{ctx: ctx, ins: ins, user: user, args: args, path: path}, nil
}

// address returns the address of a page that is shown, without what is shown only once.
func address(q *request) string {
	args := url.Values{}
	for k, v := range q.args {
		if k != "notice" {
			args[k] = v
		}
	}
	path := q.path
	if path == "" {
		path = "./"
	}
	if len(args) == 0 {
		return path
	}
	return path + "?" + args.Encode()
}

// inspector returns an inspector that shows what a user may see, and has the user's name in the audit log.
func (s *site) inspector(user User) (*inspect.Inspector, error) {
	redact := s.cfg.Redact
	if s.hidden(user) {
		redact = func(c *inspect.Contents) {
			if s.cfg.Redact != nil {
				s.cfg.Redact(c)
			}
			hide(c)
		}
	}
	return inspect.New(s.rdb, inspect.Config{Redact: redact, Actor: user.Name})
}

// hidden reports whether arguments are hidden from a user.
func (s *site) hidden(user User) bool { return s.cfg.HideArguments && user.Role < Operator }

// may reports whether a user may do what needs a role. Where it only shows something, Viewer is enough.
func (s *site) may(user User, role Role) bool {
	return user.Role >= role && (role == Viewer || !s.cfg.ReadOnly)
}

// hide removes what may be secret.
func hide(c *inspect.Contents) {
	c.Args, c.Kwargs, c.Headers, c.Result = nil, nil, nil, nil
	c.Error, c.Stack, c.Failures = "", "", nil
	c.Call = inspect.ShortName(inspect.Printable(c.Function)) + "(…)"
}

// failed tells Config.OnError of an error.
func (s *site) failed(r *http.Request, err error) {
	if s.cfg.OnError != nil {
		s.cfg.OnError(r, err)
	}
}

// day is as long as a sign-in lasts.
const day = 24 * time.Hour
