package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/examples/quickstart/photos"
)

// site is a small web site: a camera's photos at /camera, our copies of them at /photos, their thumbnails at
// /thumbnails, and a page about those at /report. As any web application would, it delays what a request should not
// wait for.
type site struct {
	url    string
	queue  *delayed.Queue
	visits chan visit
	server *httptest.Server

	mu    sync.Mutex // protects files
	files map[string][]byte
}

// visit is something that a worker did here.
type visit struct {
	pid  int    // of the worker
	what string // get, put or half, and the path
}

// openSite starts the site on a free port of this machine.
func openSite(queue *delayed.Queue) *site {
	s := &site{queue: queue, visits: make(chan visit, 1000), files: map[string][]byte{}}
	for i, name := range names {
		s.files["/camera/"+name] = takePhoto(i)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", s.get)
	mux.HandleFunc("PUT /", s.put)
	s.server = httptest.NewServer(mux)
	s.url = s.server.URL
	return s
}

func (s *site) close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// put keeps a file and delays what follows from it. A task may run more than once, and what follows then does too; that
// does no harm here, as the same files are written again.
func (s *site) put(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.keep(r.URL.Path, content)
	s.note(r, "put")
	switch folder, name := path.Split(r.URL.Path); folder {
	case "/photos/":
		_, err = s.queue.DelayContext(r.Context(), photos.Thumbnail, s.url+"/photos/"+name, s.url+"/thumbnails/"+name,
			160)
	case "/thumbnails/":
		if thumbnails := s.thumbnails(); len(thumbnails) == len(names) {
			_, err = s.queue.DelayContext(r.Context(), photos.Report, thumbnails, s.url+"/report")
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError) // the worker will try again
	}
}

func (s *site) get(w http.ResponseWriter, r *http.Request) {
	content := s.file(r.URL.Path)
	if content == nil {
		http.NotFound(w, r)
		return
	}
	s.note(r, "get")
	if r.URL.Path == "/camera/"+slow {
		half := len(content) / 2
		_, _ = w.Write(content[:half])
		pause(r.Context(), 500*time.Millisecond)
		s.note(r, "half")
		pause(r.Context(), 500*time.Millisecond)
		content = content[half:]
	}
	_, _ = w.Write(content) // a client that is gone needs nothing
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// note tells the quickstart of a visit. Workers give their process id as the name of their user agent.
func (s *site) note(r *http.Request, what string) {
	v := visit{what: what + " " + r.URL.Path}
	_, _ = fmt.Sscanf(r.UserAgent(), "process/%d", &v.pid)
	s.visits <- v
}

func (s *site) keep(path string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = content
}

func (s *site) file(path string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[path]
}

// thumbnails returns the addresses of those that are there.
func (s *site) thumbnails() []string {
	var urls []string
	for _, name := range names {
		if path := "/thumbnails/" + name; s.file(path) != nil {
			urls = append(urls, s.url+path)
		}
	}
	return urls
}
