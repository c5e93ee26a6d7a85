package page

import (
	"net/http"
	"time"

	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// login shows the page for signing in, and signs in. It is served to anybody.
func (s *shared) login(w http.ResponseWriter, r *http.Request) {
	data := struct {
		Wrong, None bool
		CSRF        string
	}{None: len(s.Config.Tokens) == 0, CSRF: csrfMark}
	status := http.StatusOK
	if r.Method == http.MethodPost {
		if err := auth.CheckCSRF(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if t := s.Auth.Token(r.PostFormValue("token")); t != nil {
			value := s.Auth.Sign(t, time.Now().Add(sessionLife))
			http.SetCookie(w, auth.Cookie(r, auth.SessionCookie, value, sessionLife))
			seeOther(w, "./")
			return
		}
		data.Wrong, status = true, http.StatusUnauthorized
	}
	s.write(w, r, status, &layout{Title: "Sign in", Template: "login", Data: data})
}

// logout ends the session.
func (s *shared) logout(w http.ResponseWriter, r *http.Request, _ *site.Request) {
	http.SetCookie(w, auth.Cookie(r, auth.SessionCookie, "", -time.Second))
	seeOther(w, "login")
}

// sessionLife is how long a sign-in lasts.
const sessionLife = 24 * time.Hour
