//go:build unix

package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/godelayed/delayed/itest/dashboard/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }

// serve serves a document at any address but /missing.
func serve(t *testing.T, body string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		policy := "default-src 'none'; script-src 'unsafe-inline'; img-src 'self' data:"
		w.Header().Set("Content-Security-Policy", policy)
		fmt.Fprint(w, `<!doctype html><html lang=en><title>t</title><link rel=icon href="data:,"><main>`, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestPageComplains opens pages that each have one fault, and expects that the page tells of it.
func TestPageComplains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"style":     {`<h1 style="color:red">x</h1>`, "policy: style-src-attr forbids inline"},
		"image":     {`<h1>x</h1><img alt="" src="//a.invalid/x.png">`, "policy: img-src forbids"},
		"console":   {`<h1>x</h1><script>console.error("broken", 1)</script>`, `console.error: "broken"`},
		"exception": {`<h1>x</h1><script>throw new Error("thrown")</script>`, "Error: thrown"},
		"missing":   {`<h1>x</h1><img alt="" src="/missing">`, "status of 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := browser.Open(t)
			p.Go(serve(t, c.body))
			p.Eval("new Promise((done) => setTimeout(done))", nil)
			all := strings.Join(p.Complaints(), "\n")
			if !strings.Contains(all, c.want) {
				t.Errorf("expected a complaint with %q, found %q", c.want, all)
			}
			p.Forgive("")
		})
	}
}

// TestPageIsMeasured opens a page that breaks rules of accessibility and is too wide, then one that is in good order.
func TestPageIsMeasured(t *testing.T) {
	t.Parallel()
	p := browser.Open(t)
	p.Size(390, 800)
	p.Go(serve(t, `<h1>x</h1><input><pre>`+strings.Repeat("x", 500)+`</pre>`))
	if broken := p.Axe(); len(broken) != 1 || !strings.HasPrefix(broken[0], "label: ") {
		t.Errorf("expected that the field without a label is found, found %q", broken)
	}
	if pixels, elements := p.Wide(); pixels < 1000 || len(elements) != 1 || !strings.HasPrefix(elements[0], "<pre>") {
		t.Errorf("expected a wide pre, found %d pixels of %q", pixels, elements)
	}
	p.Go(serve(t, `<h1>x</h1><label>A <input></label><p>Text</p>`))
	if broken := p.Axe(); len(broken) > 0 {
		t.Errorf("found %q", broken)
	}
	if pixels, _ := p.Wide(); pixels != 0 {
		t.Errorf("the narrow page is %d pixels too wide", pixels)
	}
}

// TestPageIsUsed types, clicks, answers a question, and looks at what has come of it.
func TestPageIsUsed(t *testing.T) {
	t.Parallel()
	p := browser.Open(t)
	p.Go(serve(t, `<label>A <input id=a></label> <button id=b>B</button><p id=out></p><script>
		b.onclick = () => { out.textContent = confirm("Sure of " + a.value + "?") + " " +
			matchMedia("(prefers-color-scheme: dark)").matches };</script>`))
	p.Type("#a", "xyz")
	p.Dark(true)
	if question := p.Accept(true, func() { p.Click("#b") }); question != "Sure of xyz?" {
		t.Errorf("found question %q", question)
	}
	p.Until("the answer is there", `out.textContent === "true true"`)
	p.Accept(false, func() { p.Click("#b") })
	p.Until("the other answer is there", `out.textContent === "false true"`)
	if got := p.Text("#out"); got != "false true" {
		t.Errorf("found %q", got)
	}
	if png := p.Screenshot(); !strings.HasPrefix(string(png), "\x89PNG") {
		t.Error("expected a PNG")
	}
}
