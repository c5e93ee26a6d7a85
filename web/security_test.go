package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/web"
)

// methods are those that somebody may try.
var methods = []string{
	"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "GETX",
}

// browser is a client with cookies, as different from that of ask as somebody can be.
type browser struct {
	*bench
	cookies map[string]*http.Cookie
	header  http.Header // of each request
}

func (b *bench) browser() *browser {
	return &browser{bench: b, cookies: map[string]*http.Cookie{}, header: http.Header{"Accept": {"text/html"}}}
}

// send sends a request and keeps the cookies that come with the answer.
func (br *browser) send(method, address string, form url.Values) answer {
	br.T.Helper()
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.Method, req.RequestURI = method, "/"+address
	u, err := url.ParseRequestURI("/" + address)
	br.Must(err)
	req.URL = u
	req.Header = br.header.Clone()
	ctx, cancel := context.WithTimeout(br.T.Context(), 10*time.Second) // live pages have no end
	defer cancel()
	req = req.WithContext(ctx)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Body = io.NopCloser(strings.NewReader(form.Encode()))
	}
	for _, c := range br.cookies {
		req.AddCookie(c)
	}
	w := httptest.NewRecorder()
	br.h.ServeHTTP(w, req)
	for _, c := range w.Result().Cookies() {
		br.cookies[c.Name] = c
	}
	return answer{w.Code, w.Header(), w.Body.String()}
}

// secret is what forms of this browser carry.
func (br *browser) secret() string {
	br.T.Helper()
	if br.cookies[web.CSRFCookie] == nil {
		br.send("GET", "login", nil)
	}
	return br.cookies[web.CSRFCookie].Value
}

// signIn signs in as the user of a role.
func (br *browser) signIn(r web.Role) *browser {
	br.T.Helper()
	a := br.send("POST", "login", url.Values{"token": {secret(r)}, "csrf": {br.secret()}})
	if a.Status != http.StatusSeeOther || br.cookies[web.SessionCookie] == nil {
		br.T.Fatalf("signing in: %d, %s", a.Status, a.Body)
	}
	return br
}

// TestNobodyGetsIn tries all addresses by all methods without being anybody: only the page for signing in and the
// assets answer.
func TestNobodyGetsIn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*web.Config){
		"tokens": func(*web.Config) {},
		"authorize says who": func(c *web.Config) {
			c.Authorize = func(*http.Request) (web.User, error) { return web.User{}, web.ErrUnauthorized }
		},
		"authorize says no": func(c *web.Config) {
			c.Authorize = func(*http.Request) (web.User, error) { return web.User{}, errors.New(marked) }
		},
		"authorize says neither": func(c *web.Config) {
			c.Authorize = func(*http.Request) (web.User, error) { return web.User{Name: marked}, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, change)
			x := b.fill()
			before := b.content()
			for _, header := range [][2]string{
				{},
				{"Authorization", "Bearer "},
				{"Authorization", "Bearer wrong"},
				{"Authorization", "Basic YTpi"},
				{"Authorization", secret(web.Admin)},
				{"Authorization", "Bearer  " + secret(web.Admin)},
				{"Cookie", web.SessionCookie + "=x.9999999999.y"},
				{"Cookie", web.SessionCookie + "=" + secret(web.Admin)},
				{"X-Forwarded-User", "admin"},
				{"Accept", "application/json"},
				{"X-Delayed-Main", "1"},
			} {
				br := b.browser()
				if br.secret(); header[0] != "" { // as whoever has seen the page for signing in
					br.header.Set(header[0], header[1])
				}
				form := x.forms()[0]
				form.Set("csrf", br.secret())
				form.Set("do", "pause")
				for _, path := range paths() {
					for _, method := range methods {
						if header[0] != "" && method != "GET" && method != "POST" {
							continue // one of them is enough
						}
						b.refuses(br, method, path, form)
					}
				}
			}
			if keys := changes(before, b.content()); len(keys) > 0 {
				t.Errorf("nobody has changed %v", keys)
			}
		})
	}
}

// refuses fails the test unless an address that is not for everybody answers with a refusal, and nothing else.
func (b *bench) refuses(br *browser, method, path string, form url.Values) {
	b.T.Helper()
	if method != http.MethodPost {
		form = nil
	}
	a := br.send(method, path+"?name="+queueName+"&u=./&token="+url.QueryEscape(secret(web.Admin)), form)
	refused := a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden ||
		a.Status == http.StatusSeeOther && a.Header.Get("Location") == "login" && a.Body == "" ||
		a.Status == http.StatusTemporaryRedirect // to the same address, written as it should be
	shown := a.Status != http.StatusTemporaryRedirect && strings.Contains(a.Body, queueName)
	if !refused && !open(path, method) || shown || strings.Contains(a.Body, marked) {
		b.T.Errorf("%s %s with %v: %d, %s", method, path, br.header, a.Status, a.Body)
	}
}

// open reports whether an address is for everybody.
func open(path, method string) bool {
	reads := method == http.MethodGet || method == http.MethodHead
	return path == "login" && (reads || method == http.MethodPost) || strings.HasPrefix(path, "assets/") && reads
}

// TestViewersChangeNothing tries each action of each page as those who may not do it.
func TestViewersChangeNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role   web.Role
		change func(*web.Config)
	}{
		"viewer":             {web.Viewer, func(*web.Config) {}},
		"admin of read-only": {web.Admin, func(c *web.Config) { c.ReadOnly = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.change)
			forms := b.fill().forms()
			before := b.content()
			br := b.browser().signIn(c.role)
			eachAction(func(path, action string, role web.Role) {
				if role <= web.Viewer {
					t.Errorf("%s of %s is allowed to viewers", action, path)
				}
				for _, form := range forms {
					form.Set("do", action)
					form.Set("csrf", br.secret())
					for _, method := range []string{"POST", "PUT"} {
						a := br.send(method, path, form)
						if a.Status < 400 || a.Status == http.StatusInternalServerError {
							t.Errorf("%s %s of %s by cookie: %d, %s", method, action, path, a.Status, a.Body)
						}
						a = b.ask(c.role, method, path+"?"+form.Encode(), form)
						if a.Status < 400 || a.Status == http.StatusInternalServerError {
							t.Errorf("%s %s of %s by token: %d, %s", method, action, path, a.Status, a.Body)
						}
					}
				}
			})
			for path, actions := range web.Routes() { // looking changes nothing either, whatever the address says
				for action := range actions {
					for _, form := range []url.Values{forms[0], forms[len(forms)-1]} {
						form.Set("do", action)
						br.send("GET", path+"?"+form.Encode(), nil)
					}
				}
			}
			b.Must(b.h.Close()) // it waits for jobs
			if keys := changes(before, b.content()); len(keys) > 0 {
				t.Errorf("changed: %v", keys)
			}
		})
	}
}

// TestOperatorsDoNotAdminister tries the actions of admins as an operator.
func TestOperatorsDoNotAdminister(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	forms := b.fill().forms()
	before := b.content()
	eachAction(func(path, action string, role web.Role) {
		for _, form := range forms {
			if form.Set("do", action); role == web.Admin {
				if a := b.ask(web.Operator, "POST", path, form); a.Status != http.StatusForbidden {
					t.Errorf("%s of %s: %d, %s", action, path, a.Status, a.Body)
				}
			}
		}
	})
	b.Must(b.h.Close())
	if keys := changes(before, b.content()); len(keys) > 0 {
		t.Errorf("changed: %v", keys)
	}
}

// TestCrossSiteRequests makes the browser of an admin who is signed in send what other sites could make it send.
func TestCrossSiteRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	forms := b.fill().forms()
	br, other := b.browser().signIn(web.Admin), b.browser()
	before := b.content()
	try := func(path string, form url.Values, what string) {
		t.Helper()
		if a := br.send("POST", path, form); a.Status != http.StatusForbidden {
			t.Errorf("%s: POST %s: %d, %s", what, path, a.Status, a.Body)
		}
	}
	eachAction(func(path, action string, _ web.Role) {
		for _, form := range []url.Values{forms[0], forms[len(forms)-1]} {
			form.Set("do", action)
			form.Del("csrf")
			try(path, form, "without a secret")
			try(path+"?csrf="+br.secret(), form, "with the secret in the address")
			for what, value := range map[string]string{
				"empty": "", "wrong": "wrong", "of another browser": other.secret(), "shortened": br.secret()[:20],
				"lengthened": br.secret() + "x",
			} {
				form.Set("csrf", value)
				try(path, form, what)
			}
			form.Set("csrf", br.secret())
			for _, header := range [][2]string{
				{"Origin", "https://evil.example"},
				{"Origin", "null"},
				{"Origin", "http://example.com.evil.example"},
				{"Origin", "http://example.com:81"},
				{"Sec-Fetch-Site", "cross-site"},
				{"Sec-Fetch-Site", "same-site"},
			} {
				br.header.Set(header[0], header[1])
				try(path, form, header[1])
				br.header.Del(header[0])
			}
			br.send("GET", path+"?"+form.Encode(), nil)
		}
	})
	form := url.Values{"token": {secret(web.Admin)}, "csrf": {other.secret()}}
	try("logout", form, "of another browser")
	if a := br.send("POST", "login", form); a.Status != http.StatusForbidden {
		t.Errorf("signing in from elsewhere: %d", a.Status)
	}
	b.Must(b.h.Close())
	if keys := changes(before, b.content()); len(keys) > 0 {
		t.Errorf("changed: %v", keys)
	}
}

// TestOwnSiteRequests is the other half of TestCrossSiteRequests: with the browser's own secret the same works.
func TestOwnSiteRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill()
	br := b.browser().signIn(web.Operator)
	for _, origin := range []string{"", "http://example.com"} { // the host of httptest's requests
		if br.header.Set("Sec-Fetch-Site", "same-origin"); origin != "" {
			br.header.Set("Origin", origin)
		}
		for _, action := range []string{"pause", "resume"} {
			form := url.Values{"do": {action}, "name": {queueName}, "csrf": {br.secret()}}
			if a := br.send("POST", "queue", form); a.Status != http.StatusSeeOther {
				t.Errorf("%s: %d, %s", action, a.Status, a.Body)
			}
		}
	}
	if a := br.send("POST", "logout", url.Values{"csrf": {br.secret()}}); a.Status != http.StatusSeeOther {
		t.Errorf("signing out: %d", a.Status)
	}
	if a := br.send("GET", "", nil); a.Status != http.StatusSeeOther || a.Header.Get("Location") != "login" {
		t.Errorf("after signing out: %d", a.Status)
	}
}

// TestHeadersOfAllAnswers looks at the headers of pages, errors, redirects, assets and events.
func TestHeadersOfAllAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.fill()
	check := func(what string, a answer) {
		t.Helper()
		csp := a.Header.Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'",
			"form-action 'self'",
		} {
			if !strings.Contains(csp+";", part+";") {
				t.Errorf("%s: %d: policy %q lacks %q", what, a.Status, csp, part)
			}
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %d: %s is %q", what, a.Status, name, got)
			}
		}
		asset := a.Status == http.StatusOK && strings.Contains(what, " assets/")
		if got := a.Header.Get("Cache-Control"); !asset && got != "no-store" {
			t.Errorf("%s: %d: Cache-Control is %q", what, a.Status, got)
		}
		for name, values := range a.Header {
			if text := strings.Join(values, ""); strings.ContainsAny(text, "\r\n\x00") {
				t.Errorf("%s: %d: %s is %q", what, a.Status, name, text)
			}
		}
	}
	nobody, admin := b.browser(), b.browser().signIn(web.Admin)
	for _, path := range append(paths(), "/evil.example", "a//b", "./x") {
		if path == "live" {
			continue // below: its answer does not end
		}
		for _, method := range methods {
			check("nobody: "+method+" "+path, nobody.send(method, path, nil))
			for _, query := range []string{
				"", "?queue=mail&name=mail&id=" + x.waiting, "?queue=%00&name=%ff&id=%0d%0aX:y",
			} {
				check("admin: "+method+" "+path+query, admin.send(method, path+query, nil))
			}
		}
	}
	eachAction(func(path, action string, role web.Role) {
		form := url.Values{
			"do": {action}, "csrf": {admin.secret()}, "id": {"x\r\nSet-Cookie: a=b"}, "name": {"x\r\nSet-Cookie: a=b"},
			"queue": {"x\r\nSet-Cookie: a=b"}, "back": {"queue?name=x\r\nSet-Cookie: a=b"},
		}
		check(action+" of "+path, admin.send("POST", path, form))
	})

	srv := httptest.NewServer(b.h)
	t.Cleanup(srv.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/live?u=./", nil)
	b.Must(err)
	req.Header.Set("Authorization", "Bearer "+secret(web.Viewer))
	resp, err := http.DefaultClient.Do(req)
	b.Must(err)
	resp.Body.Close()
	check("live", answer{resp.StatusCode, resp.Header, ""})
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Errorf("live: %d, %s", resp.StatusCode, got)
	}
	b.Must(b.h.Close())
	check("closed", admin.send("GET", "", nil))
	if a := admin.send("GET", "", nil); a.Status != http.StatusServiceUnavailable {
		t.Errorf("closed: %d", a.Status)
	}
}

// TestSessions tries cookies that were not made for whoever has them, and looks at those that are.
func TestSessions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	later := time.Now().Add(time.Hour)
	good := b.h.Session("admin", later)
	other := newBench(t, func(c *web.Config) { c.Tokens = c.Tokens[:2] }) // without the admin
	_, rest, _ := strings.Cut(b.h.Session("viewer", later), ".")
	adminName, _, _ := strings.Cut(good, ".")
	for what, value := range map[string]string{
		"empty": "", "dots": "...", "without a signature": good[:strings.LastIndexByte(good, '.')],
		"another signature": good[:len(good)-4] + "AAAA", "another name": adminName + "." + rest,
		"expired": b.h.Session("admin", time.Now().Add(-time.Minute)), "no such user": b.h.Session("root", later),
		"a dashboard with other tokens": other.h.Session("admin", later),
		"a later end":                   strings.Replace(good, ".1", ".9", 1),
		"the token itself":              secret(web.Admin), "long": strings.Repeat("A", 100_000),
	} {
		br := b.browser()
		br.cookies[web.SessionCookie] = &http.Cookie{Name: web.SessionCookie, Value: value}
		if a := br.send("GET", "", nil); a.Status != http.StatusSeeOther || a.Header.Get("Location") != "login" {
			t.Errorf("%s: %d", what, a.Status)
		}
	}
	br := b.browser()
	br.cookies[web.SessionCookie] = &http.Cookie{Name: web.SessionCookie, Value: good}
	if a := br.send("GET", "", nil); a.Status != http.StatusOK {
		t.Errorf("a good session: %d", a.Status)
	}
	// A token that is removed takes its sessions with it.
	br = other.browser()
	br.cookies[web.SessionCookie] = &http.Cookie{Name: web.SessionCookie, Value: other.h.Session("admin", later)}
	if a := br.send("GET", "", nil); a.Status != http.StatusSeeOther {
		t.Errorf("a session of a token that is removed: %d", a.Status)
	}

	for _, https := range []bool{false, true} {
		br := b.browser()
		if https {
			br.header.Set("X-Forwarded-Proto", "https")
		}
		br.signIn(web.Admin)
		for _, name := range []string{web.SessionCookie, web.CSRFCookie} {
			c := br.cookies[name]
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != https || c.Domain != "" {
				t.Errorf("https %v: %s: %+v", https, name, c)
			}
		}
	}
}

// TestSigningInTellsNothing compares the answers to wrong tokens, however near they are.
func TestSigningInTellsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	br := b.browser()
	var first answer
	for i, token := range []string{
		"x", "", secret(web.Admin)[1:], secret(web.Admin) + " ", strings.ToUpper(secret(web.Admin)), "admin",
		strings.Repeat("x", 1<<20),
	} {
		a := br.send("POST", "login", url.Values{"token": {token}, "csrf": {br.secret()}})
		if i == 0 {
			first = a
		}
		if a.Status != http.StatusUnauthorized || a.Body != first.Body || br.cookies[web.SessionCookie] != nil {
			t.Errorf("%.30q: %d, %d bytes, expected those for any wrong token", token, a.Status, len(a.Body))
		}
	}
	if strings.Contains(first.Body, "admin") {
		t.Errorf("the page names a user: %s", first.Body)
	}
}

// elsewhere are addresses of other sites, or what browsers might take for such.
var elsewhere = []string{
	"//evil.example", "///evil.example", `\\evil.example`, `/\evil.example`, `\/evil.example`, "https://evil.example/",
	"https:evil.example", "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", " //evil.example",
	"\t//evil.example", "\n//evil.example", "./\t/evil.example", ".//evil.example", "queue/../..//evil.example",
	"/queue", "../queue", "%2f%2fevil.example", "/%2fevil.example", "queue%00", "?x", "#x", "user@evil.example",
	"queue;//evil.example", "\u2028//evil.example", "\ufeff//evil.example", "login", "logout", "live?u=./",
}

// TestRedirectsStayHere gives actions and live pages addresses of other sites.
func TestRedirectsStayHere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill()
	base, err := url.Parse("https://here.example/queues/queue")
	b.Must(err)
	routes := web.Routes()
	for _, back := range append([]string{"queue?name=//evil.example", "queue#//evil.example"}, elsewhere...) {
		a := b.ask(web.Operator, "POST", "queue", url.Values{"do": {"pause"}, "name": {queueName}, "back": {back}})
		to, err := base.Parse(a.Header.Get("Location"))
		if err != nil || a.Status != http.StatusSeeOther {
			t.Errorf("%q: %d, %v", back, a.Status, err)
			continue
		}
		path, below := strings.CutPrefix(to.Path, "/queues/")
		if _, known := routes[path]; to.Scheme != "https" || to.Host != "here.example" || !below || !known ||
			strings.ContainsAny(a.Header.Get("Location"), "\\\r\n\t ") {
			t.Errorf("back to %q leads to %q", back, a.Header.Get("Location"))
		}
	}
	for _, u := range elsewhere {
		if u[0] == '?' || u[0] == '#' {
			continue // of the overview
		}
		a := b.ask(web.Viewer, "GET", "live?u="+url.QueryEscape(u), nil)
		if a.Status != http.StatusBadRequest && a.Status != http.StatusNotFound {
			t.Errorf("live %q: %d, %s", u, a.Status, a.Body)
		}
	}
}
