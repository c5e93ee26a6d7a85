package page

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"sync"

	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/chart"
	"github.com/godelayed/delayed/web/internal/site"
)

// shared is what all pages share.
type shared struct {
	*site.Site

	note    notices
	history chart.HistoryCache
}

// page is what a page shows in its main part.
type page struct {
	Title    string // in the title of the window, and the heading
	Template string // its name
	Data     any
	Still    bool   // not made anew while it is open
	Status   int    // of HTTP; 0 for 200
	To       string // the address of another page, in place of this one; "" for none
}

// layout is a whole page.
type layout struct {
	Title    string
	Template string
	Data     any

	Site   string // Config.Title
	Nav    []navItem
	User   auth.User
	CSRF   string
	Theme  string // "light", "dark" or "": as the system
	Notice *notice
	Live   string // the address that live updates come from; "" for none
	Hidden bool   // arguments are
	Assets string // what changes the addresses of assets whenever they change
}

// rights are what templates ask of a user. Data of pages embeds it.
type rights struct {
	Operate, Admin bool // the user may
	Hidden         bool // arguments are hidden
	CSRF           string
	Back           string // the page's address, for forms
}

// rights returns what the user of a request may do.
func (s *shared) rights(q *site.Request) rights {
	return rights{
		Operate: s.May(q.User, auth.Operator), Admin: s.May(q.User, auth.Admin), Hidden: s.Hidden(q.User),
		CSRF: csrfMark, Back: address(q),
	}
}

// csrfMark stands in main parts of pages for the secret of the browser, which is filled in last: live pages are made
// once for many browsers. It is a secret itself, so that no text from outside contains it.
var csrfMark = rand.Text()

//go:embed templates/*.html
var templateFiles embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(funcs).ParseFS(templateFiles, "templates/*.html"))
})

// MainPart executes the template of a page's main part.
func MainPart(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := templates().ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}

// write writes a whole page.
func (s *shared) write(w http.ResponseWriter, r *http.Request, status int, l *layout) {
	l.CSRF, l.Site, l.Assets = auth.CSRF(w, r), s.Config.Title, assetsVersion()
	if c, err := r.Cookie("delayed_theme"); err == nil && (c.Value == "light" || c.Value == "dark") {
		l.Theme = c.Value
	}
	inner, err := MainPart(l.Template, l.Data)
	var b bytes.Buffer
	if err == nil {
		inner = bytes.ReplaceAll(inner, []byte(csrfMark), []byte(template.HTMLEscapeString(l.CSRF)))
		err = templates().ExecuteTemplate(&b, "layout", struct {
			*layout
			Main template.HTML
		}{l, template.HTML(inner)}) //nolint:gosec // a template made it
	}
	if err != nil {
		s.Failed(r, err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // the browser may have gone
	}
}

// navItem is a link of the navigation.
type navItem struct {
	Name, Href, Key string
	Here            bool
	role            auth.Role // 0: all users see it
}

var navigation = []navItem{
	{Name: "Overview", Href: "./", Key: "o"},
	{Name: "Tasks", Href: "tasks", Key: "t"},
	{Name: "Functions", Href: "functions", Key: "f"},
	{Name: "Workers", Href: "workers", Key: "w"},
	{Name: "Periodic", Href: "periodic", Key: "p"},
	{Name: "Groups", Href: "groups", Key: "g"},
	{Name: "Parked", Href: "parked", Key: "k"},
	{Name: "Deaths", Href: "deaths", Key: "d"},
	{Name: "Audit", Href: "audit", Key: "a"},
	{Name: "Enqueue", Href: "enqueue", Key: "n", role: auth.Admin},
}

// nav returns the navigation with the section of a page marked.
func (s *shared) nav(path string, user auth.User) (items []navItem) {
	for _, item := range navigation {
		if item.role == 0 || s.May(user, item.role) {
			item.Here = item.Href == sections[path] || item.Href == path
			items = append(items, item)
		}
	}
	return items
}

// sections are the sections that pages without an entry of their own belong to.
var sections = map[string]string{
	"": "./", "queue": "./", "task": "tasks", "edit": "tasks", "job": "tasks", "jobs": "tasks", "function": "functions",
	"worker": "workers", "entry": "periodic",
}

// notices are texts that the next page shows, after an action has sent the browser there. The address of that page has
// only their key, so that nobody can make a page show a text by a link.
type notices struct {
	mu    sync.Mutex
	texts map[string]notice
	order []string
}

type notice struct {
	Text string
	Bad  bool
	user string // who may see it
}

const maxNotices = 1000

// add keeps a notice and returns its key.
func (n *notices) add(v notice) string {
	key := rand.Text()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.texts == nil {
		n.texts = map[string]notice{}
	}
	if len(n.order) == maxNotices {
		delete(n.texts, n.order[0])
		n.order = n.order[1:]
	}
	n.texts[key] = v
	n.order = append(n.order, key)
	return key
}

// get returns the notice of a key for a user.
func (n *notices) get(key, user string) (notice, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.texts[key]
	return v, ok && v.user == user
}

//go:embed assets
var assetFiles embed.FS

// assetsVersion is the beginning of the hash of all assets.
var assetsVersion = sync.OnceValue(func() string {
	sum := sha256.New()
	_ = fs.WalkDir(assetFiles, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := assetFiles.ReadFile(name) // embedded
			sum.Write(data)
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6])
})

// asset serves an embedded file. Browsers may keep it for ever: its address changes with the files.
func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	data, err := assetFiles.ReadFile("assets/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(data) //nolint:gosec // an embedded file; an error means that the browser has gone
}
