package cli_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// served is a running delayed web, and a browser that looks at it.
type served struct {
	*bench
	url       string // of the overview
	secret    string // behind the # of the address, if there is one
	out, errs *screen
	end       func() int
	browser   *http.Client
}

var dashboardAt = regexp.MustCompile(`The dashboard of .* is at (https?://\S+)\n`)

// serve runs delayed web at a free port of this machine.
func (b *bench) serve(args ...string) *served {
	b.T.Helper()
	s := &served{bench: b}
	args = append([]string{"web", "--listen", "127.0.0.1:0"}, args...) // the last --listen counts
	s.out, s.errs, s.end = b.following(args...)
	b.Until("it says where it is: "+s.errs.String(), func() bool { return dashboardAt.MatchString(s.out.String()) })
	u, err := url.Parse(dashboardAt.FindStringSubmatch(s.out.String())[1])
	b.Must(err)
	s.secret, u.Fragment = u.Fragment, ""
	s.url = strings.TrimSuffix(u.String(), "login")
	jar, err := cookiejar.New(nil)
	b.Must(err)
	s.browser = &http.Client{Jar: jar}
	b.T.Cleanup(s.browser.CloseIdleConnections)
	return s
}

// do sends a request as a browser does.
func (s *served) do(method, address string, form url.Values, header ...string) (status int, body string) {
	s.T.Helper()
	resp := s.ask(method, address, form, header...)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	s.Must(err)
	return resp.StatusCode, string(text)
}

func (s *served) ask(method, address string, form url.Values, header ...string) *http.Response {
	s.T.Helper()
	req, err := http.NewRequestWithContext(s.T.Context(), method, s.url+address, strings.NewReader(form.Encode()))
	s.Must(err)
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := s.browser.Do(req)
	s.Must(err)
	return resp
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// signIn signs in with a token.
func (s *served) signIn(secret string) (status int, body string) {
	s.T.Helper()
	_, body = s.do(http.MethodGet, "login", nil)
	field := csrfField.FindStringSubmatch(body)
	if field == nil {
		s.T.Fatalf("no form to sign in with: %s", body)
	}
	return s.do(http.MethodPost, "login", url.Values{"token": {secret}, "csrf": {field[1]}})
}

// tokenFile writes a file of tokens.
func tokenFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return file
}

const (
	annsSecret = "ann-0123456789abcdef"
	bobsSecret = "bob-0123456789abcdef"
)

// TestWeb signs in with the token that the command has made, and looks at a live page until Ctrl-C.
func TestWeb(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q, 3)
	s := b.serve("--title", "shop <b>")
	if status, body := s.do(http.MethodGet, "", nil); status != http.StatusOK || !strings.Contains(body, "Sign in") ||
		strings.Contains(body, "mail") {
		t.Errorf("before signing in: %d, %s", status, body)
	}
	if status, body := s.signIn("no" + s.secret); status != http.StatusUnauthorized {
		t.Errorf("signing in with a wrong token: %d, %s", status, body)
	}
	if status, body := s.signIn(s.secret); status != http.StatusOK || !strings.Contains(body, "queue?name=mail") ||
		!strings.Contains(body, "admin") || !strings.Contains(body, "shop &lt;b&gt;") {
		t.Errorf("the overview: %d, %s", status, body)
	}
	live := s.ask(http.MethodGet, "live?u=./", nil)
	defer live.Body.Close()
	events := bufio.NewScanner(live.Body)
	events.Buffer(nil, 1<<20)
	more := true
	for more && !strings.HasPrefix(events.Text(), "data: ") {
		more = events.Scan()
	}
	if !strings.Contains(events.Text(), "mail") {
		t.Errorf("the live page shows %q", events.Text())
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d after Ctrl-C: %s", code, s.errs)
	}
	if out := s.out.String(); strings.Count(out, s.secret) != 1 || s.errs.String() != "" {
		t.Errorf("it printed %q and %q", out, s.errs)
	}
}

// TestWebChecksNames asks by names that lead to this machine without being its own.
func TestWebChecksNames(t *testing.T) {
	t.Parallel()
	s := newBench(t).serve("--host", "ops.example.com")
	port := strings.TrimSuffix(s.url[strings.LastIndexByte(s.url, ':'):], "/")
	for name, want := range map[string]int{
		"localhost": 200, "LOCALHOST" + port: 200, "127.0.0.1" + port: 200, "[::1]" + port: 200, "[::1]": 200,
		"ops.example.com": 200, "ops.example.com:443": 200,
		"evil.example": 421, "evil.example" + port: 421, "127.0.0.1.evil.example" + port: 421, "localhost.": 421,
		"10.0.0.1": 421,
	} {
		for _, address := range []string{"login", "assets/app.js"} {
			if status, body := s.do(http.MethodGet, address, nil, "Host", name); status != want {
				t.Errorf("%s asked for as %s: %d, expected %d: %s", address, name, status, want, body)
			}
		}
	}
}

// TestWebTokens signs in with the tokens of a file and of a profile.
func TestWebTokens(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := tokenFile(t, "# name role secret\n\nann admin "+annsSecret+"\n bob\tviewer "+bobsSecret+"\n", 0o600)
	config := tokenFile(t, fmt.Sprintf("default: x\nprofiles: {x: {url: %q, web: {tokens: "+
		"[{name: ann, role: admin, secret: %s}, {name: bob, role: viewer, secret: %s}]}}}\n",
		b.Server.URL(), annsSecret, bobsSecret), 0o600)
	for name, args := range map[string][]string{
		"file": {"--token-file", file}, "profile": {"--config", config, "--profile", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.serve(args...)
			if s.secret != "" {
				t.Errorf("it made a token although there are some: %s", s.out)
			}
			for secret, role := range map[string]string{annsSecret: "admin", bobsSecret: "viewer"} {
				status, body := s.do(http.MethodGet, "", nil, "Authorization", "Bearer "+secret)
				if status != http.StatusOK || !strings.Contains(body, "<small>"+role+"</small>") {
					t.Errorf("%s: %d, %s", role, status, body)
				}
			}
			if code := s.end(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if text := s.out.String() + s.errs.String(); strings.Contains(text, annsSecret) {
				t.Errorf("it printed a secret: %s", text)
			}
		})
	}
}

// TestWebRefuses starts with flags and files that would let in whom they should not.
func TestWebRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ok := "ann admin " + annsSecret + "\n"
	config := func(tokens string, mode os.FileMode) string {
		return tokenFile(t, fmt.Sprintf("profiles: {x: {url: %q, web: {tokens: %s}}}", b.Server.URL(), tokens), mode)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"is open to other machines", []string{"--listen", ":0"}},
		{"is open to other machines", []string{"--listen", "0.0.0.0:8090"}},
		{"is open to other machines", []string{"--listen", "[::]:8090"}},
		{"is open to other machines", []string{"--listen", "localhost.example.com:8090"}},
		{"expected host:port", []string{"--listen", "8090"}},
		{"mode 0644): chmod 600 ", []string{"--token-file", tokenFile(t, ok, 0o644)}},
		{"mode 0620): chmod 600 ", []string{"--token-file", tokenFile(t, ok, 0o620)}},
		{"no such file", []string{"--token-file", "/nowhere"}},
		{"has no tokens", []string{"--token-file", tokenFile(t, "# none\n", 0o600)}},
		{
			":2: expected a name, a role and a secret, found 2 words",
			[]string{"--token-file", tokenFile(t, ok+"admin "+bobsSecret, 0o600)},
		},
		{
			":1: expected a name, a role and a secret, found another role",
			[]string{"--token-file", tokenFile(t, bobsSecret+" Admin "+bobsSecret, 0o600)},
		},
		{"at least 16 bytes, found 5", []string{"--token-file", tokenFile(t, "ann admin short", 0o600)}},
		{"names that differ", []string{"--token-file", tokenFile(t, ok+ok, 0o600)}},
		{"mode 0640)", []string{
			"--profile", "x", "--config",
			config("[{name: ann, role: admin, secret: "+annsSecret+"}]", 0o640),
		}},
		{`token 1 of profile x`, []string{
			"--profile", "x", "--config",
			config("[{name: ann, secret: "+annsSecret+"}]", 0o600),
		}},
		{"expected both --tls-cert and --tls-key", []string{"--tls-cert", "x"}},
		{"no such file", []string{"--tls-cert", "/nowhere", "--tls-key", "/nowhere"}},
		{"expected a path such as /queues", []string{"--base-path", "queues"}},
		{"expected a path such as /queues", []string{"--base-path", "/a/../b"}},
		{"expected a path such as /queues", []string{"--base-path", "/{x}"}},
		{"belong to commands such as", []string{"--json"}},
	} {
		r := b.run(append([]string{"web", "--listen", "127.0.0.1:0"}, c.args...)...)
		if r.code != 2 || !strings.Contains(r.err, c.want) || r.out != "" {
			t.Errorf("%v: exit code %d, %q, %q: expected %q", c.args, r.code, r.out, r.err, c.want)
		}
		if strings.Contains(r.err, annsSecret) || strings.Contains(r.err, bobsSecret) {
			t.Errorf("%v: the error shows a secret: %s", c.args, r.err)
		}
	}
	b.fails(1, "connect", "web", "--listen", "127.0.0.1:0", "--url", "redis://127.0.0.1:1")
	taken := b.serve()
	b.fails(1, "choose another address by --listen", "web", "--listen",
		strings.TrimSuffix(strings.TrimPrefix(taken.url, "http://"), "/"))
}

// TestWebBehindProxy serves below a path, to other machines, without and with TLS.
func TestWebBehindProxy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delayMany(b.q, 1)
	file := tokenFile(t, "ann admin "+annsSecret, 0o600)
	s := b.serve("--listen", "0.0.0.0:0", "--token-file", file, "--base-path", "/ops/queues/", "--read-only")
	if !strings.HasSuffix(s.url, "/ops/queues/") || !strings.HasPrefix(s.url, "http://localhost:") {
		t.Fatalf("it is at %s", s.url)
	}
	if !strings.Contains(s.errs.String(), "warning: tokens and cookies travel openly") {
		t.Errorf("no warning: %q", s.errs)
	}
	// The redirect to the page for signing in, and the one after that, stay below the path.
	if status, body := s.do(http.MethodGet, "", nil); status != http.StatusOK || !strings.Contains(body, "Sign in") {
		t.Errorf("before signing in: %d, %s", status, body)
	}
	if status, body := s.signIn(annsSecret); status != http.StatusOK || !strings.Contains(body, "queue?name=mail") {
		t.Errorf("the overview: %d, %s", status, body)
	}
	root, _, _ := strings.Cut(s.url, "/ops/queues/")
	s.url = root
	for _, address := range []string{"/", "/ops/queues"} {
		if status, body := s.do(http.MethodGet, address, nil); status != http.StatusOK ||
			!strings.Contains(body, "queue?name=mail") {
			t.Errorf("%s: %d, %s", address, status, body)
		}
	}
	if status, _ := s.do(http.MethodGet, "/login", nil); status != http.StatusNotFound {
		t.Errorf("an address outside of the path: %d", status)
	}

	certs := redistest.NewTLS(t)
	own := b.serve("--listen", "0.0.0.0:0", "--token-file", file, "--tls-cert", certs.Cert, "--tls-key", certs.Key)
	if !strings.HasPrefix(own.url, "https://") || own.errs.String() != "" {
		t.Errorf("with TLS it is at %s, and says %q", own.url, own.errs)
	}
	own.browser.Transport = trusting(t, certs)
	t.Cleanup(own.browser.CloseIdleConnections)
	if status, body := own.signIn(annsSecret); status != http.StatusOK || !strings.Contains(body, "queue?name=mail") {
		t.Errorf("the overview by TLS: %d, %s", status, body)
	}
	for _, c := range own.browser.Jar.Cookies(must(url.Parse(own.url))) {
		if strings.HasPrefix(c.Name, "delayed_") {
			return // the jar gives back secure cookies to https only
		}
	}
	t.Error("no cookies of the dashboard")
}

// trusting trusts an authority, whose certificates are for another name.
func trusting(t *testing.T, certs *redistest.TLS) *http.Transport {
	t.Helper()
	text, err := os.ReadFile(certs.CA)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	return &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool, ServerName: redistest.TLSName, MinVersion: tls.VersionTLS12,
	}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestWebInTerminal starts it as somebody at a shell does.
func TestWebInTerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := newTerminal(t, b, bash...)
	x.keys("clear; delayed web -l 127.0.0.1:0; echo left with $?", "Enter")
	x.sees("The dashboard of 127.0.0.1:", "/login#")
	x.keys("C-c")
	x.sees("left with 0")
}
