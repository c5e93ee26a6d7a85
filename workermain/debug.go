package workermain

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Package net/http/pprof would do most of what follows, but importing it adds its pages to http.DefaultServeMux, which
// the program may show to everybody. They include the command line, in which there may be passwords.

// profilePath is where go tool pprof looks for profiles.
const profilePath = "/debug/pprof/"

// guard refuses requests that come from elsewhere than this machine, and all of them unless they are wanted.
func guard(wanted bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !wanted:
			http.NotFound(w, r)
		case !local(r):
			http.Error(w, "delayed: /debug is for requests from this machine to localhost only", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// local reports whether a request comes from this machine, and was not passed on by a proxy. It must be addressed to
// this machine as well: otherwise a web page whose name resolves to 127.0.0.1 could make a browser ask for it. Nor may
// a browser ask for the page of another site.
func local(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	for name := range r.Header { // whatever its value: a client can send an empty one, to which proxies add another
		switch name {
		case "Forwarded", "X-Real-Ip", "Via":
			return false
		}
		if strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]") // without a port
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// withProfiles answers for profiles, and leaves all other paths to next.
func withProfiles(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, profilePath)
		switch {
		case !ok:
			next.ServeHTTP(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "delayed: expected GET", http.StatusMethodNotAllowed)
		case name == "":
			listProfiles(w)
		case name == "profile":
			record(w, r, 30, pprof.StartCPUProfile, pprof.StopCPUProfile)
		case name == "trace":
			record(w, r, 1, trace.Start, trace.Stop)
		default:
			snapshot(w, r, name)
		}
	})
}

// listProfiles names what there is.
func listProfiles(w http.ResponseWriter) {
	names := []string{"profile?seconds=30", "trace?seconds=1"}
	for _, p := range pprof.Profiles() {
		names = append(names, p.Name()+"?debug=1")
	}
	slices.Sort(names)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, strings.Join(names, "\n"))
}

// snapshot answers with a profile of what is now.
func snapshot(w http.ResponseWriter, r *http.Request, name string) {
	p := pprof.Lookup(name)
	if p == nil {
		http.Error(w, "delayed: unknown profile: "+profilePath+" lists those that there are", http.StatusNotFound)
		return
	}
	level, _ := strconv.Atoi(r.FormValue("debug")) // what is no number counts as 0, as in package net/http/pprof
	contentType := "application/octet-stream"
	if level > 0 {
		contentType = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", contentType)
	_ = p.WriteTo(w, level) // fails only if the client has gone
}

// record answers with what happens in the next seconds.
func record(w http.ResponseWriter, r *http.Request, seconds float64, start func(io.Writer) error, stop func()) {
	if text := r.FormValue("seconds"); text != "" {
		var err error
		seconds, err = strconv.ParseFloat(text, 64)
		if most := (writeTimeout - readTimeout).Seconds(); err != nil || !(seconds > 0 && seconds <= most) {
			http.Error(w, fmt.Sprintf("delayed: seconds: expected a number from 0 to %v", most), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := start(w); err != nil { // somebody else records
		http.Error(w, "delayed: "+err.Error(), http.StatusConflict)
		return
	}
	defer stop()
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}
