package web

import (
	"net/http"
	"time"
)

// login shows the page for signing in, and signs in. It is served to anybody.
func (s *site) login(w http.ResponseWriter, r *http.Request) {
	data := struct {
		Wrong, None bool
		CSRF        string
	}{None: len(s.cfg.Tokens) == 0, CSRF: csrfMark}
	status := http.StatusOK
	if r.Method == http.MethodPost {
		if err := checkCSRF(r); err != nil {
			p, _ := problemOf(err)
			http.Error(w, p.text, p.status)
			return
		}
		if t := s.auth.token(r.PostFormValue("token")); t != nil {
			http.SetCookie(w, cookie(r, sessionCookie, s.auth.sign(t, time.Now().Add(day)), day))
			seeOther(w, "./")
			return
		}
		data.Wrong, status = true, http.StatusUnauthorized
	}
	s.write(w, r, status, &layout{Title: "Sign in", Template: "login", Data: data})
}

// logout ends the session.
func (s *site) logout(w http.ResponseWriter, r *http.Request, _ *request) {
	http.SetCookie(w, cookie(r, sessionCookie, "", -time.Second))
	seeOther(w, "login")
}
