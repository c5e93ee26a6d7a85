package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web"
)

const webLong = `Serve the dashboard: queues, tasks, workers, functions, periodic entries, groups and the audit log,
live, with actions, in a browser. Ctrl-C ends it.

Without tokens it serves this machine alone: it makes a random token, and prints an address that
signs in with it. To serve others, give users tokens, each with a role: viewer looks, operator
also acts on tasks, queues, workers and entries, admin does everything. They are those of --token-file,
each line a name, a role and a secret of at least 16 characters, or those of the profile:
web: {tokens: [{name: ann, role: admin, secret: …}]}. Nobody else may read the file that has them:
chmod 600. Programs use the API with the header "Authorization: Bearer SECRET".

Tokens and cookies must not travel openly: give --tls-cert and --tls-key, or let a proxy in front speak
TLS, and listen where only it gets to. A proxy that does not strip its path needs --base-path. At
addresses of this machine alone, only requests for localhost, 127.0.0.1, ::1, the address of --listen
and the names of --host are answered, so that no page of another site gets in by a name that leads here.`

// webFlags are the flags of the command web.
type webFlags struct {
	listen, tokenFile, cert, key string
	title, basePath              string
	hosts                        []string
	readOnly, hideArguments      bool
}

// webCommand serves the dashboard.
func (a *app) webCommand() *cobra.Command {
	f := webFlags{listen: "127.0.0.1:8090"}
	cmd := &cobra.Command{
		Use: "web", Short: "Serve the dashboard: everything live, with actions, in a browser", Long: webLong,
		Example: "  delayed web\n" +
			"  delayed web --listen :8443 --token-file /etc/delayed/tokens --tls-cert cert.pem --tls-key key.pem\n" +
			"  delayed web --base-path /queues --host ops.example.com --token-file tokens",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.json || a.watch != 0 {
				return usagef("web is for browsers: --json and --watch belong to commands such as delayed queues")
			}
			s, err := a.webServer(&f)
			if err != nil {
				return err
			}
			return s.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.listen, "listen", "l", f.listen, "address to serve")
	flags.StringVar(&f.tokenFile, "token-file", "", "file of tokens, instead of those of the profile")
	flags.StringVar(&f.cert, "tls-cert", "", "file with the server's certificate, and those between it and its root")
	flags.StringVar(&f.key, "tls-key", "", "file with its key")
	flags.StringVar(&f.title, "title", "", "name of the dashboard (default: the profile, or host and database)")
	flags.StringVar(&f.basePath, "base-path", "", "path below which everything is, such as /queues")
	flags.StringSliceVar(&f.hosts, "host", nil, "further name by which a proxy or browser asks for it")
	flags.BoolVar(&f.readOnly, "read-only", false, "change nothing, whatever a user's role")
	flags.BoolVar(&f.hideArguments, "hide-arguments", false,
		"hide arguments, headers, results and errors from viewers")
	return cmd
}

// webServer checks the flags and makes the server. It does not listen yet.
func (a *app) webServer(f *webFlags) (*webServer, error) {
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, usagef("--listen %s: expected host:port, such as 127.0.0.1:8090: %w", quote(f.listen), err)
	}
	f.basePath = strings.TrimSuffix(f.basePath, "/")
	if f.basePath != "" && (f.basePath[0] != '/' || path.Clean(f.basePath) != f.basePath ||
		strings.ContainsAny(f.basePath, "?#%{} \\")) {
		return nil, usagef("--base-path %s: expected a path such as /queues", quote(f.basePath))
	}
	if (f.cert == "") != (f.key == "") {
		return nil, usagef("expected both --tls-cert and --tls-key, or none of them")
	}
	where, err := a.target(a.Getenv)
	if err != nil {
		return nil, err
	}
	s := &webServer{
		app: a, listen: f.listen, basePath: f.basePath, where: where.shown(), hosts: map[string]bool{},
		own: ownMachine(host),
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, usagef("--tls-cert, --tls-key: %w", err)
		}
		s.tls = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	tokens, err := where.tokens(f.tokenFile)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		if !s.own {
			return nil, usagef("--listen %s is open to other machines: give users tokens by --token-file or the "+
				"profile, or listen at 127.0.0.1:%s; see delayed web --help", f.listen, port)
		}
		tokens, s.secret = randomToken(userName())
	}
	if s.own || len(f.hosts) > 0 {
		for _, name := range append([]string{"localhost", "127.0.0.1", "::1", host}, f.hosts...) {
			s.hosts[strings.ToLower(name)] = true
		}
	}
	if f.title == "" {
		f.title = s.where
	}
	if err := a.connect(); err != nil {
		return nil, err
	}
	s.dashboard, err = web.New(a.rdb, web.Config{
		Tokens: tokens, ReadOnly: f.readOnly, HideArguments: f.hideArguments, Title: f.title, OnError: s.failed,
	})
	if err != nil {
		return nil, misused(err)
	}
	return s, nil
}

// ownMachine reports whether only this machine can connect to a host.
func ownMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// userName is who uses this process, for the audit log.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "local"
}

// webServer serves the dashboard.
type webServer struct {
	app              *app
	listen, basePath string
	where            string // the queues are
	own              bool   // only this machine can connect
	hosts            map[string]bool
	tls              *tls.Config
	secret           string // of the token that was made; "" if users have theirs
	dashboard        *web.Handler
}

// The time-outs end requests of slow or vanished clients. The dashboard lifts those of live pages itself.
const (
	webHeaderTime = 10 * time.Second
	webReadTime   = time.Minute
	webWriteTime  = 2 * time.Minute
	webIdleTime   = 2 * time.Minute
	webEndTime    = 10 * time.Second // for requests that run when the server is stopped
)

// run serves until ctx ends.
func (s *webServer) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.dashboard.Close()) }()
	if err := s.app.rdb.Ping(ctx); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address by --listen", err)
	}
	srv := &http.Server{
		Handler: s.handler(), TLSConfig: s.tls, ReadHeaderTimeout: webHeaderTime, ReadTimeout: webReadTime,
		WriteTimeout: webWriteTime, IdleTimeout: webIdleTime,
		ErrorLog: log.New(webLog{s.app}, "", 0),
	}
	ended := make(chan error, 1)
	go func() {
		if s.tls != nil {
			ended <- srv.ServeTLS(l, "", "")
		} else {
			ended <- srv.Serve(l)
		}
	}()
	s.printAddress(l.Addr())
	select {
	case err = <-ended:
		return err
	case <-ctx.Done():
	}
	// Live pages end first: they would keep their connections.
	err = s.dashboard.Close()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), webEndTime)
	defer cancel()
	if e := srv.Shutdown(late); e != nil {
		err = errors.Join(err, fmt.Errorf("requests went on for %v after the end: %w", webEndTime, e), srv.Close())
	}
	<-ended
	return err
}

// printAddress prints where the dashboard is.
func (s *webServer) printAddress(addr net.Addr) {
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	host, _, _ := net.SplitHostPort(s.listen)            // it was checked
	_, port, _ := net.SplitHostPort(addr.String())       // made by package net
	if host == "" || host == "0.0.0.0" || host == "::" { // any of this machine
		host = "localhost"
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: s.basePath + "/"}
	if s.secret != "" {
		u.Path, u.Fragment = s.basePath+"/login", s.secret
	}
	p := s.app.page()
	p.Line(term.C("The dashboard of " + s.where + " is at " + u.String()))
	fmt.Fprint(s.app.Out, p.String())
	if s.tls == nil && !s.own {
		fmt.Fprintln(s.app.Err, "delayed: warning: tokens and cookies travel openly: give --tls-cert and --tls-key,",
			"or let only a proxy that speaks TLS get here")
	}
}

// handler returns the dashboard at its path, with what a server of its own adds.
func (s *webServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(s.basePath+"/", http.StripPrefix(s.basePath, s.dashboard))
	if s.basePath != "" {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" || r.URL.Path == s.basePath {
				http.Redirect(w, r, s.basePath+"/", http.StatusFound)
				return
			}
			http.NotFound(w, r)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.known(r.Host) {
			http.Error(w, "unknown Host header: expected a name of this dashboard; add it with delayed web --host",
				http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// known reports whether the dashboard answers to a name. Otherwise a page of another site, whose name its owner lets
// lead to this machine, could read what is here.
func (s *webServer) known(host string) bool {
	if len(s.hosts) == 0 {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return s.hosts[strings.ToLower(host)]
}

// failed logs the error of a request. Queries of addresses may have arguments of tasks in them.
func (s *webServer) failed(r *http.Request, err error) {
	if r.Context().Err() == nil {
		fmt.Fprintf(webLog{s.app}, "%s %s: %s", r.Method, r.URL.Path, document.ErrorText(err.Error()))
	}
}

// webLog prints lines that may have texts from outside in them.
type webLog struct{ *app }

func (l webLog) Write(line []byte) (int, error) {
	text := term.Printable(strings.TrimSuffix(string(line), "\n"))
	_, err := fmt.Fprintln(l.Err, "delayed:", term.Clip(text, mostError))
	return len(line), err
}

// profileWeb is the part of a profile for the dashboard.
type profileWeb struct {
	Tokens []profileToken `yaml:"tokens"`
}

// profileToken lets a user sign in.
type profileToken struct {
	Name   string `yaml:"name"`
	Role   string `yaml:"role"`
	Secret string `yaml:"secret"`
}

// tokens returns those of a file, or else of the profile.
func (t *target) tokens(file string) ([]web.Token, error) {
	if file != "" {
		return readTokens(file)
	}
	var tokens []web.Token
	for i, p := range t.web.Tokens {
		role, err := web.ParseRole(p.Role)
		if err != nil {
			return nil, usagef("configuration %s: token %d of %s: %w", t.file, i+1, t.source, err)
		}
		tokens = append(tokens, web.Token{User: web.User{Name: p.Name, Role: role}, Secret: p.Secret})
	}
	if len(tokens) == 0 {
		return nil, nil
	}
	f, err := os.Open(t.file)
	if err != nil {
		return nil, usagef("configuration: %w", err)
	}
	defer f.Close()
	return tokens, onlyOwn(f)
}

// readTokens reads a file with a name, a role and a secret in each line.
func readTokens(file string) ([]web.Token, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("--token-file: %w", err)
	}
	defer f.Close()
	if err := onlyOwn(f); err != nil {
		return nil, err
	}
	var text strings.Builder
	if _, err := f.WriteTo(&text); err != nil {
		return nil, usagef("--token-file: %w", err)
	}
	var tokens []web.Token
	n := 0
	for line := range strings.Lines(text.String()) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		wrong := func(found string) error { // the line itself may have the secret in it
			return usagef("--token-file %s:%d: expected a name, a role and a secret, found %s", file, n, found)
		}
		if len(words) != 3 {
			return nil, wrong(term.Count(len(words), "word"))
		}
		role, err := web.ParseRole(words[1])
		if err != nil {
			return nil, wrong("another role than viewer, operator or admin")
		}
		tokens = append(tokens, web.Token{User: web.User{Name: words[0], Role: role}, Secret: words[2]})
	}
	if len(tokens) == 0 {
		return nil, usagef("--token-file %s has no tokens: expected lines of name, role and secret", file)
	}
	return tokens, nil
}

// onlyOwn refuses a file that others than its owner can read or write.
func onlyOwn(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return usagef("%w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" { // which has no such modes
		return usagef("%s has secrets, and others can read or change it (mode %04o): chmod 600 %s", f.Name(), mode,
			f.Name())
	}
	return nil
}

// randomToken makes a token with the rights of an admin.
func randomToken(name string) (tokens []web.Token, secret string) {
	secret = rand.Text()
	return []web.Token{{User: web.User{Name: name, Role: web.Admin}, Secret: secret}}, secret
}

// String hides the secret.
func (t profileToken) String() string { return fmt.Sprintf("%s (%s)", t.Name, t.Role) }
