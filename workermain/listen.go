package workermain

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// readTimeout bounds reading a request, and closing the server.
	readTimeout = 5 * time.Second
	// writeTimeout bounds an answer: it is longer than a CPU profile of 30 s, which is what go tool pprof asks for.
	writeTimeout = time.Minute
)

// listen answers HTTP requests at the address of -listen until the function it returns is called. Without an address it
// does nothing.
func (p *program) listen(ctx context.Context) (closeServer func(), err error) {
	addr := p.settings.listen
	if addr == "" {
		return func() {}, nil
	}
	handler, err := p.handler()
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("delayed: -listen: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 1 << 14, ErrorLog: log.New(httpErrors{p.log}, "", 0),
	}
	p.log.WithField("address", listener.Addr().String()).Info("answering HTTP requests")
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.log.WithError(err).Error("HTTP requests are not answered any more")
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		<-served
	}, nil
}

// httpErrors writes what package net/http logs to the program's log, such as panics of handlers.
type httpErrors struct{ log logrus.FieldLogger }

// Write implements io.Writer.
func (e httpErrors) Write(line []byte) (int, error) {
	e.log.WithField("error", strings.TrimSpace(string(line))).Warn("an HTTP request went wrong")
	return len(line), nil
}

// handler returns what answers all requests: the health checks, and for all other paths the program's own handlers.
// What is below /debug/ is guarded.
func (p *program) handler() (http.Handler, error) {
	mux := http.NewServeMux()
	if p.serve != nil {
		if err := p.addHandlers(mux); err != nil {
			return nil, fmt.Errorf("delayed: Config.Serve: %w", err)
		}
	}
	health := map[string]http.Handler{"/healthz": p.answer(p.alive), "/readyz": p.answer(p.ready)}
	debug := guard(p.settings.debug, withProfiles(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch h := health[r.URL.Path]; {
		case h != nil:
			h.ServeHTTP(w, r)
		case r.URL.Path == "/debug" || strings.HasPrefix(r.URL.Path, "/debug/"):
			debug.ServeHTTP(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	}), nil
}

// addHandlers lets the program add its handlers. A pattern that http.ServeMux refuses is an error.
func (p *program) addHandlers(mux *http.ServeMux) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	return p.serve(mux, p.rdb)
}
