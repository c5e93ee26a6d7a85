package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// live serves the events of a page: field u is its address. The page is made anew once for all browsers that have it
// open and may see the same.
func (h *Pages) live(w http.ResponseWriter, r *http.Request, user auth.User) {
	target, err := url.Parse(r.URL.Query().Get("u"))
	if err != nil || target.IsAbs() || target.Host != "" {
		http.Error(w, "expected the address of a page in u", http.StatusBadRequest)
		return
	}
	path := target.Path
	if path == "./" {
		path = ""
	}
	page, ok := Routes[path]
	if !ok || page.Show == nil || !h.May(user, page.Role) {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	// Its context is that of the site: the page is made anew for all who have it open.
	q, err := h.NewRequest(h.Ctx, user, path, target.Query())
	if err != nil {
		h.fail(w, r, user, err)
		return
	}
	key := fmt.Sprint(q.Path, "?", q.Args.Encode(), " ", user.Role)
	client, leave := h.open.Join(key, nil, func(ctx context.Context, source *site.Source) {
		h.show(ctx, source, q, page)
	})
	if client == nil {
		http.Error(w, "too many live pages are open", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	mark, secret := []byte(csrfMark), []byte(template.HTMLEscapeString(auth.CSRF(w, r)))
	fill := func(event []byte) []byte { return bytes.ReplaceAll(event, mark, secret) }
	h.Stream(w, r, user, client, fill, func(string) []byte { return nil })
}

// show makes a page anew until nobody has it open.
func (s *shared) show(ctx context.Context, source *site.Source, q *site.Request, r route) {
	tick := time.NewTicker(s.Config.Refresh)
	defer tick.Stop()
	for latest := []byte(nil); ; {
		if event := s.event(ctx, q, r); !bytes.Equal(event, latest) {
			latest = event
			source.Show(event)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// event makes a page's main part, as an event of the kind main, or problem.
func (s *shared) event(ctx context.Context, q *site.Request, r route) []byte {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	own := *q
	own.Ctx = ctx
	kind, body := "main", []byte(nil)
	p, err := r.Show(s, &own)
	if err == nil {
		body, err = MainPart(p.Template, p.Data)
	}
	if err != nil {
		problem, _ := site.HTTPErrorOf(err)
		kind, body = "problem", []byte(problem.Text)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: ", kind)
	text := json.NewEncoder(&b)
	text.SetEscapeHTML(false)     // the event is no HTML, and a page has so many < that they are a quarter more
	_ = text.Encode(string(body)) // a string and a line end
	return append(b.Bytes(), '\n')
}
