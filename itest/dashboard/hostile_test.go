//go:build unix

package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gomodule/redigo/redis"
	"golang.org/x/net/html"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/itest/dashboard/browser"
)

// TestHostileTexts brings hostile texts into all fields that come from outside, and looks at all pages: no element, no
// attribute and no address of a page comes from the texts, and nothing in it steers terminals or the direction of
// writing.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	texts := hostileStrings()
	if len(texts) < 300 {
		t.Fatalf("found %d texts, expected 300", len(texts))
	}
	words := readVocabulary(t)
	const batch = 50 // so that lists show all of them
	for at := 0; at < len(texts); at += batch {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, asAdmin)
			s.poison(texts[at:min(at+batch, len(texts))])
			pages := s.crawl(twoOfEachKind())
			kinds := map[string]bool{}
			found := 0
			for _, a := range pages {
				words.check(t, a.address, a.body)
				found += strings.Count(a.body, hostileMark)
				path, _, _ := strings.Cut(a.address, "?")
				if !kinds[path] {
					kinds[path] = true
					words.check(t, "live "+a.address, s.live(a.address))
				}
			}
			if found < batch || len(kinds) < 10 || len(pages) < 30 {
				t.Errorf("%d pages of %d paths have %d of the texts: the test shows nothing", len(pages), len(kinds),
					found)
			}
		})
	}
}

// TestHostileTextsInBrowser lets a browser open a page of each kind: it runs nothing of the texts, asks for nothing
// that they name, and finds no breach of the policy.
func TestHostileTextsInBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, calm(asAdmin))
	s.poison(hostilePayloads[:60])
	p := browser.Open(t)
	for _, a := range s.crawl(kindOfDocument) {
		p.Go(s.url + a.address)
		p.Until("the page is live", live)
		var found int
		p.Eval(`document.querySelectorAll("[xss7], iframe, object, embed, base, #content script, style").length`,
			&found)
		if found > 0 {
			t.Errorf("%s has %d elements of the texts", a.address, found)
		}
	}
}

// twoOfEachKind makes crawl look at two addresses of each kind.
func twoOfEachKind() func(testing.TB, string) string {
	keys, seen := map[string]string{}, map[string]int{}
	return func(t testing.TB, address string) string {
		t.Helper()
		if keys[address] == "" {
			kind := kindOf(t, address)
			seen[kind]++
			keys[address] = fmt.Sprint(kind, " ", min(seen[kind], 2))
		}
		return keys[address]
	}
}

// live returns the main part of a page as live pages get it.
func (s *site) live(address string) string {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"live?u="+url.QueryEscape(address), nil)
	s.Must(err)
	resp, err := http.DefaultClient.Do(req)
	s.Must(err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for more := true; more && !strings.HasPrefix(lines.Text(), "data: "); {
		more = lines.Scan()
	}
	var body string
	err = json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.T.Fatalf("live page %s: %d, %v", address, resp.StatusCode, err)
	}
	return body
}

// poison brings texts to wherever texts come from. What a queue, an id or an entry refuses as its name is left out.
func (s *site) poison(texts []string) {
	s.T.Helper()
	cut := func(text string, most int) string { return text[:min(len(text), most)] }
	does := delayed.Func(func(ctx context.Context, i int, text string, all []string) (string, error) {
		_ = delayed.Progress(ctx, 1, 2, cut(text, 4096)) // it may be refused
		switch i % 4 {
		case 0:
			return text, nil
		case 1:
			panic(text)
		}
		return "", delayed.Archive(errors.New(text))
	}, delayed.Name("mail.Does"), delayed.Retention(time.Hour))
	gathers := delayed.Func(func(string, ...int) {}, delayed.Name("mail.Gathers"), delayed.MaxRetry(0),
		delayed.Gather(delayed.GatherPolicy{Grace: time.Hour}))
	ctx := s.T.Context()
	q := delayed.NewQueue(queueName, s.rdb)
	try := func(q *delayed.Queue, task *delayed.Task) bool {
		_, err := q.Enqueue(ctx, task)
		return err == nil
	}
	accepted := map[string]int{}
	n := 0
	for i, text := range texts {
		short := cut(text, 200)
		headed := q.With(delayed.Header("h", cut(text, 1000)), delayed.Header(cut("h"+text, 60), "v"))
		for kind := range 3 {
			task := delayed.Call(does, 4*i+kind, text, []string{text})
			if try(headed.With(delayed.TaskID(short)), task) || try(headed, task) || try(q, task) {
				n++
			}
		}
		for what, task := range map[string]*delayed.Task{
			"path":   delayed.NewGoTask("x/"+short, text),
			"python": delayed.NewPyTask(short, []any{text}, map[string]any{short: text}),
			"parked": delayed.NewGoTask("mail.Forgotten", map[string]any{short: text}),
		} {
			if try(q.With(delayed.In(24*time.Hour)), task) {
				accepted[what]++
			}
			if what == "parked" {
				try(q, task)
			}
		}
		if try(q.With(delayed.Group(short)), delayed.Call(gathers, short, 1)) {
			accepted["group"]++
		}
		if q.Periodic().Set(ctx, delayed.Entry{
			Name: cut(text, 100), Spec: "0 3 * * *", Task: delayed.Call(does, 1, text, nil),
		}) == nil {
			accepted["entry"]++
		}
		if queue, err := delayed.OpenQueue(cut(text, 60), s.rdb, delayed.QueueConfig{}); err == nil && try(queue,
			delayed.NewGoTask("mail.Welcome", text)) {
			accepted["queue"]++
		}
		ins, err := inspect.New(s.rdb, inspect.Config{Actor: short})
		s.Must(err)
		if ins.Resume(ctx, queueName) == nil {
			accepted["actor"]++
		}
	}
	w := s.work(delayed.WorkerConfig{HeartbeatLife: time.Hour, NoSweeper: true}, does, gathers)
	ins, err := inspect.New(s.rdb, inspect.Config{})
	s.Must(err)
	s.Until(fmt.Sprintf("%d tasks have run", n), func() bool { // counters of the day may begin anew meanwhile
		q, err := ins.Queue(ctx, queueName)
		s.Must(err)
		return q.Pending == 0 && q.Active == 0
	})
	for _, what := range []string{"path", "parked", "group", "entry", "queue", "actor"} {
		if accepted[what] == 0 {
			s.T.Logf("of %d texts none is accepted as %s", len(texts), what)
		}
	}
	s.publish(w, texts)
}

// publish lets workers that are not there say of themselves what the texts are.
func (s *site) publish(w *delayed.Worker, texts []string) {
	s.T.Helper()
	var beat, functions string
	s.Until("the worker has said what it is", func() bool {
		beat, _ = redis.String(s.Do("GET", s.Name+"_worker:"+w.ID()), nil)
		functions, _ = redis.String(s.Do("HGET", s.Name+"_functions", w.ID()), nil)
		return beat != "" && functions != ""
	})
	_, process, _ := strings.Cut(beat, ":")
	for i, text := range texts[:min(len(texts), 20)] {
		text = strings.ToValidUTF8(text[:min(len(text), 2000)], "\ufffd") // JSON has no other
		id := text[:min(len(text), 100)]
		if i%2 == 0 {
			id = fmt.Sprint("w", i)
		}
		s.Do("SADD", s.Name+"_workers", id)
		s.Do("SET", s.Name+"_worker:"+id, text+":"+process, "EX", 3600)
		s.Do("HSET", s.Name+"_functions", id, poisoned(s.T, functions, text))
	}
}

// poisoned replaces all texts in a JSON document.
func poisoned(t testing.TB, document, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		t.Fatalf("expected JSON, found %q: %v", document, err)
	}
	var replace func(v any) any
	replace = func(v any) any {
		switch v := v.(type) {
		case string:
			return text
		case []any:
			for i := range v {
				v[i] = replace(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = replace(v[k])
			}
		}
		return v
	}
	out, err := json.Marshal(replace(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// vocabulary is what templates are made of.
type vocabulary struct{ elements, attributes map[string]bool }

var (
	elementName   = regexp.MustCompile(`<([a-zA-Z][a-zA-Z0-9]*)`)
	attributeName = regexp.MustCompile(`[\s"}]([a-zA-Z][a-zA-Z0-9-]*)="`)
	bareName      = regexp.MustCompile(`[\s}"](open|required|autofocus|checked|disabled|selected|multiple|` +
		`novalidate|data-[a-z-]+|defer)[\s>{/]`)
)

// readVocabulary returns the names of elements and attributes in the templates.
func readVocabulary(t *testing.T) *vocabulary {
	t.Helper()
	v := &vocabulary{map[string]bool{"tbody": true}, map[string]bool{"hidden": true}}
	files, err := filepath.Glob("../../web/internal/page/templates/*.html")
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	for _, file := range append(files, "../../web/internal/chart/chart.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range elementName.FindAllStringSubmatch(string(text), -1) {
			v.elements[strings.ToLower(m[1])] = true
		}
		for _, re := range []*regexp.Regexp{attributeName, bareName} {
			for _, m := range re.FindAllStringSubmatch(string(text), -1) {
				v.attributes[strings.ToLower(m[1])] = true
			}
		}
	}
	for _, name := range []string{"iframe", "object", "embed", "base", "style", "img", "template", "xmp"} {
		if v.elements[name] {
			t.Errorf("expected no element %s in templates", name)
		}
	}
	return v
}

// check fails the test if a page has structure that no template has, leads elsewhere, or has a character that steers.
func (v *vocabulary) check(t *testing.T, address, body string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	fault := func(format string, args ...any) {
		t.Helper()
		if wrong++; wrong <= 3 {
			t.Errorf("%.200q: %s", address, fmt.Sprintf(format, args...))
		}
	}
	if !utf8.ValidString(body) {
		fault("the page is not UTF-8")
	}
	scripts := 0
	for n := range root.Descendants() {
		switch n.Type {
		case html.ErrorNode, html.DocumentNode, html.DoctypeNode, html.RawNode:
		case html.TextNode:
			if c, steers := steering(n.Data); steers {
				fault("text with %U: %.100q", c, n.Data)
			}
		case html.CommentNode:
			fault("a comment: %.100q", n.Data)
		case html.ElementNode:
			if !v.elements[n.Data] {
				fault("element %s", n.Data)
			}
			if n.Data == "script" {
				if scripts++; scripts > 1 || n.FirstChild != nil {
					fault("a script")
				}
			}
			field := n.Data == "input" || n.Data == "option"
			for _, a := range n.Attr {
				if !v.attributes[strings.ToLower(a.Key)] || strings.HasPrefix(a.Key, "on") || a.Key == "style" ||
					a.Key == "srcdoc" {
					fault("attribute %.100q of %s", a.Key, n.Data)
				}
				// Fields give texts back as they are: ids, names, what is looked for.
				if c, steers := steering(a.Val); steers && (!field || a.Key != "value") {
					fault("%s of %s with %U: %.100q", a.Key, n.Data, c, a.Val)
				}
				switch a.Key {
				case "href", "src", "action", "formaction":
					u, err := url.Parse(a.Val)
					if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" || strings.HasPrefix(a.Val, "/") ||
						strings.Contains(u.Path, hostileMark) {
						fault("%s of %s leads to %.100q", a.Key, n.Data, a.Val)
					}
				}
			}
		}
	}
}

// steering returns a character of a text that steers terminals, parsers or the direction of writing.
func steering(text string) (c rune, is bool) {
	for _, c := range text {
		if unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Bidi_Control, c) || c == '\ufeff' ||
			c == '\u2028' || c == '\u2029' || c >= 0xe0000 && c <= 0xe007f {
			return c, true
		}
	}
	return 0, false
}
