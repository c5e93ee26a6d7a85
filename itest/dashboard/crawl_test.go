//go:build unix

package dashboard_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// answer is an answer of the dashboard.
type answer struct {
	address string // relative to the overview
	status  int
	header  http.Header
	body    string
}

// get asks for an address that is relative to the overview, as a browser does.
func (s *site) get(address string) answer {
	s.T.Helper()
	req, err := http.NewRequestWithContext(s.T.Context(), http.MethodGet, s.url+strings.TrimPrefix(address, "./"), nil)
	s.Must(err)
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	s.Must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	s.Must(err)
	return answer{address, resp.StatusCode, resp.Header, string(body)}
}

// mostPages bounds a crawl.
const mostPages = 120

// crawl follows the links of the site, and returns the answers of one page of each kind. Pages of the navigation that
// are not there are left out.
func (s *site) crawl(kindOf func(testing.TB, string) string) (found []answer) {
	s.T.Helper()
	seen := map[string]bool{}
	queue := []string{"./"}
	var next []string
	for len(queue) > 0 && len(found) < mostPages {
		address := queue[0]
		queue = queue[1:]
		key := kindOf(s.T, address)
		if seen[key] {
			continue
		}
		seen[key] = true
		a := s.get(address)
		if a.status == http.StatusNotFound {
			continue
		}
		if a.status != http.StatusOK {
			s.T.Errorf("%s: status %d: %s", address, a.status, text(a.body))
		}
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			continue
		}
		found = append(found, a)
		next = links(s.T, a.body)
		queue = append(queue, next...)
	}
	return found
}

// kindOf returns what pages of one kind have in common: the path, the state of the tasks, the tab, and whether anything
// else is chosen.
func kindOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("the dashboard links to %q: %v", address, err)
	}
	query := u.Query()
	kind := []string{u.Path, query.Get("state"), query.Get("tab")}
	for _, name := range []string{"state", "tab", "queue", "id", "name"} {
		query.Del(name)
	}
	return strings.Join(append(kind, fmt.Sprint(len(query) > 0)), " ")
}

// kindOfDocument is kindOf for tests that load pages into a browser: lists of tasks with further conditions are of one
// kind, whatever the state, because what they have of their own are the conditions.
func kindOfDocument(t testing.TB, address string) string {
	t.Helper()
	kind := kindOf(t, address)
	if strings.HasPrefix(kind, "tasks ") && strings.HasSuffix(kind, " true") {
		return "tasks with conditions"
	}
	return kind
}

// links returns the addresses of a page's links, without those that other programs are for.
func links(t testing.TB, body string) (addresses []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "a" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key != "href" || strings.HasPrefix(a.Val, "#") {
				continue
			}
			if strings.Contains(a.Val, ":") || strings.HasPrefix(a.Val, "/") {
				t.Errorf("expected links within the dashboard, found %q", a.Val)
				continue
			}
			addresses = append(addresses, a.Val)
		}
	}
	return addresses
}

// text returns the text of a document.
func text(body string) string {
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		return body
	}
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" {
			b.WriteString(strings.TrimSpace(n.Data) + " ")
		}
	}
	return b.String()
}
