package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/web"
)

// TestFormsOfAnySize sends forms that are too large, have too many fields, or are none.
func TestFormsOfAnySize(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill()
	many := url.Values{"do": {"pause"}, "name": {queueName}}
	for i := range 4_500 { // newer versions of Go refuse more than 10,000
		many.Set(fmt.Sprint("field", i), "x")
		many.Add("id", fmt.Sprint("id", i))
	}
	for what, c := range map[string]struct {
		path string
		form url.Values
		want int
	}{
		"a form of 9 MiB":          {"queue", url.Values{"do": {strings.Repeat("x", 9<<20)}}, http.StatusBadRequest},
		"9,000 fields":             {"queue", many, http.StatusSeeOther},
		"9,000 fields for no page": {"nothing", many, http.StatusNotFound},
		"no action":                {"queue", url.Values{"name": {queueName}}, http.StatusBadRequest},
		"another action":           {"queue", url.Values{"do": {"drop"}, "name": {queueName}}, http.StatusBadRequest},
		"a name of 1 MiB": {
			"queue", url.Values{"do": {"pause"}, "name": {strings.Repeat("x", 1<<20)}}, http.StatusSeeOther,
		},
	} {
		if a := b.ask(web.Operator, "POST", c.path, c.form); a.Status != c.want || len(a.Body) > 1<<16 {
			t.Errorf("%s: %d, %d bytes, expected %d: %.300s", what, a.Status, len(a.Body), c.want, a.Body)
		}
	}
	for _, kind := range []string{"multipart/form-data; boundary=x", "application/json", "text/plain", "", "x;;=\x00"} {
		body := "--x\r\nContent-Disposition: form-data; name=\"do\"\r\n\r\npause\r\n--x\r\n\r\ndo=pause&name="
		req := httptest.NewRequest(http.MethodPost, "/queue", strings.NewReader(body+queueName))
		req.Header.Set("Content-Type", kind)
		req.Header.Set("Authorization", "Bearer "+secret(web.Operator))
		w := httptest.NewRecorder()
		b.h.ServeHTTP(w, req)
		if w.Code != http.StatusBadRequest {
			t.Errorf("a form of type %q: %d, expected 400", kind, w.Code)
		}
	}
	long := b.ask(web.Viewer, "GET", "queue?name="+strings.Repeat("x", 100_000), nil)
	if long.Status != http.StatusBadRequest || len(long.Body) > 1<<16 {
		t.Errorf("a long name: %d, %d bytes", long.Status, len(long.Body))
	}
}

// TestRawRequests sends what no browser sends.
func TestRawRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := httptest.NewServer(b.h)
	t.Cleanup(srv.Close)
	auth := "Authorization: Bearer " + secret(web.Viewer) + "\r\n"
	for what, c := range map[string]struct {
		request string
		want    []int
	}{
		"HTTP/1.0":          {"GET / HTTP/1.0\r\n" + auth + "\r\n", []int{200}},
		"HTTP/1.0 and live": {"GET /nothing HTTP/1.0\r\n\r\n", []int{401}},
		"whole address":     {"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", []int{200}},
		"whole address without a path": {
			"GET http://evil.example HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", []int{200, 307},
		},
		"two slashes": {"GET //evil.example/%2e%2e HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", []int{307, 404}},
		"backslashes": {"GET /\\evil.example HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", []int{404}},
		"a null byte": {"GET /%00 HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", []int{404}},
		"asterisk":    {"OPTIONS * HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", []int{200, 400, 404}},
		"bad query":   {"GET /queue?name=%zz&;=; HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", []int{400, 404}},
		"two lengths": {
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + auth + "\r\nx", []int{400},
		},
	} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		b.Must(err)
		b.Must(conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(conn, c.request)
		b.Must(err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		b.Must(err)
		ok := false
		for _, want := range c.want {
			ok = ok || resp.StatusCode == want
		}
		to := resp.Header.Get("Location")
		if !ok || strings.HasPrefix(to, "//") || strings.Contains(to, "evil.example") && to[:2] != "/e" {
			t.Errorf("%s: %d to %q, expected %v", what, resp.StatusCode, to, c.want)
		}
		resp.Body.Close()
		conn.Close()
	}
}
