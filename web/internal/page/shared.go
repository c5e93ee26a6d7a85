package page

import (
	"github.com/godelayed/delayed/web/internal/chart"
	"github.com/godelayed/delayed/web/internal/site"
)

// shared is what all pages share.
type shared struct {
	*site.Site

	note    notices
	history chart.HistoryCache
}
