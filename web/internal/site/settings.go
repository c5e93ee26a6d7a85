package site

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/auth"
)

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
