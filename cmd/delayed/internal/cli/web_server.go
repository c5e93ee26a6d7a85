package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web"
)

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
	webEndTime    = 10 * time.Second // for requests that run when it is told to end
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
	s.say(l.Addr())
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

// say prints where the dashboard is.
func (s *webServer) say(addr net.Addr) {
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
	p.Say(term.C("The dashboard of " + s.where + " is at " + u.String()))
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
			http.Error(w, "this dashboard does not know itself by this name: delayed web --host tells it",
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

// failed tells of an error that a request met. Queries of addresses may have arguments of tasks in them.
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
