package web_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// TestLivePagesOutliveTimeouts keeps a live page open for longer than a server lets requests go on.
func TestLivePagesOutliveTimeouts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const timeout = 300 * time.Millisecond
	srv := httptest.NewUnstartedServer(b.h)
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = timeout, timeout
	srv.Start()
	t.Cleanup(srv.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/live?u=./", nil)
	b.Must(err)
	req.Header.Set("Authorization", "Bearer "+secret(web.Viewer))
	resp, err := http.DefaultClient.Do(req)
	b.Must(err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for began := time.Now(); time.Since(began) < 4*timeout; {
		_, err := b.q.Enqueue(bg, delayed.NewGoTask("mail.Welcome")) // so that the page changes
		b.Must(err)
		for more := lines.Scan(); more && !strings.HasPrefix(lines.Text(), "event: "); {
			more = lines.Scan()
		}
		if lines.Text() != "event: main" {
			t.Fatalf("after %v: %q, %v", time.Since(began), lines.Text(), lines.Err())
		}
	}
}
