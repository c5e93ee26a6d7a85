package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web/internal/api"
	"github.com/godelayed/delayed/web/internal/page"
	"github.com/godelayed/delayed/web/internal/site"
)

// Handler is a dashboard. It is safe for concurrent use.
type Handler struct {
	site  *site.Site
	pages *page.Pages
	api   *api.API
	mux   *http.ServeMux
	stop  context.CancelFunc
}

// New returns a dashboard of the queues of a Redis handle, those with its prefix. It does not connect. Mount it at a
// path that ends with a slash, and strip that path without its last slash. Close ends it.
func New(rdb *delayed.Store, cfg Config) (*Handler, error) {
	own := cfg.internal()
	if err := own.Check(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s, err := site.New(ctx, rdb, own)
	if err != nil {
		stop()
		return nil, err
	}
	h := &Handler{site: s, pages: page.New(s), api: api.New(s), mux: http.NewServeMux(), stop: stop}
	h.mux.Handle(api.Root, h.api)
	h.mux.Handle(strings.TrimSuffix(api.Root, "/"), h.api)
	h.mux.Handle("/", h.pages)
	return h, nil
}

// Close ends live pages and jobs, and waits for them. Requests are refused afterwards.
func (h *Handler) Close() error {
	h.stop()
	h.pages.Wait()
	h.api.Wait()
	h.site.Jobs.Wait()
	return nil
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP serves the dashboard.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if h.site.Ctx.Err() != nil {
		http.Error(w, "the dashboard is closed", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "" { // relative links need the slash behind the path where this is mounted
		if original, err := url.ParseRequestURI(r.RequestURI); err == nil {
			//nolint:gosec // it is the path that the program has mounted this at
			http.Redirect(w, r, original.EscapedPath()+"/", http.StatusTemporaryRedirect)
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	h.mux.ServeHTTP(w, r)
}

// maxBody is the size of the largest form: edited arguments of a task of the largest size, escaped.
const maxBody = 8 << 20
