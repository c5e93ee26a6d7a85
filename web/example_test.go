package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// The program says who its users are, here by the password that a browser asks for. Nobody else sees anything.
func ExampleNew() {
	rdb, err := delayed.Dial("redis://localhost:6379/0") // it connects when a page is asked for
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	dashboard, err := web.New(rdb, web.Config{
		Title: "staging",
		Authorize: func(r *http.Request) (web.User, error) {
			name, password, ok := r.BasicAuth()
			if !ok || password != "open sesame" {
				return web.User{}, web.ErrUnauthorized
			}
			return web.User{Name: name, Role: web.Viewer}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	defer dashboard.Close()
	mux := http.NewServeMux()
	mux.Handle("/queues/", http.StripPrefix("/queues", dashboard))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/queues/", http.NoBody))
	fmt.Println(answer.Code)
	// Output: 401
}
