package api

import (
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// shared is what all endpoints share.
type shared struct {
	*site.Site

	watch *watchers
}

// The roles that endpoints need.
const (
	viewer   = auth.Viewer
	operator = auth.Operator
	admin    = auth.Admin
)
