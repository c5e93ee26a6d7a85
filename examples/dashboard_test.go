//go:build unix

package examples

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

var (
	dashboardAddress = regexp.MustCompile(`The dashboard is at (http://\S+/queues/)login#(\S+)`)
	formSecret       = regexp.MustCompile(`name="csrf" value="([^"]+)"`)
)

// TestDashboard signs in to the dashboard, looks at its pages, and presses Ctrl-C.
func TestDashboard(t *testing.T) {
	redisURL, conn := realRedis(t)
	for name, redisURL := range map[string]string{"embedded": "", "real Redis": redisURL} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			p := start(t, redisURL, "dashboard", "-listen", "127.0.0.1:0")
			p.sees(dashboardAddress.String())
			address := dashboardAddress.FindStringSubmatch(p.output())
			v := newVisitor(t, address[1])
			form := formSecret.FindStringSubmatch(v.get("login"))
			if form == nil {
				t.Fatal("no form to sign in with")
			}
			overview := v.post("login", url.Values{"csrf": {form[1]}, "token": {address[2]}})
			if !strings.Contains(overview, "Sign out") {
				t.Fatalf("found after signing in:\n%s", overview)
			}
			// Within ten seconds, on a machine that has nothing else to do, all queues are on the overview.
			await(t, "all queues", func() error {
				overview = v.get("")
				for _, queue := range []string{"billing", "mail", "media", "search"} {
					if !strings.Contains(overview, "queue?name="+queue) {
						return fmt.Errorf("no queue %s in\n%s", queue, overview)
					}
				}
				return nil
			})
			if took := time.Since(began); limits && took > 10*time.Second {
				t.Errorf("it took %v until all queues were there, expected at most 10 s", took)
			}
			p.interrupt()
			p.ends(0)
		})
	}
	if keys, err := redis.Strings(conn.Do("KEYS", "*")); len(keys) > 0 || err != nil {
		t.Errorf("expected that nothing is left in Redis, found %q, %v", keys, err)
	}
}

// visitor is a browser that looks at the dashboard.
type visitor struct {
	t      *testing.T
	url    string // of the overview
	client *http.Client
}

func newVisitor(t *testing.T, url string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: limit}
	t.Cleanup(client.CloseIdleConnections)
	return &visitor{t, url, client}
}

func (v *visitor) get(address string) string {
	v.t.Helper()
	return v.read(v.client.Get(v.url + address))
}

func (v *visitor) post(address string, form url.Values) string {
	v.t.Helper()
	return v.read(v.client.PostForm(v.url+address, form))
}

func (v *visitor) read(resp *http.Response, err error) string {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(resp.Status))
	}
	if err != nil {
		v.t.Fatalf("%s: %v\n%s", resp.Request.URL.Path, err, body)
	}
	return string(body)
}
