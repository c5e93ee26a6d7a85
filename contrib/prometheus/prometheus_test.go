package delayedprom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/godelayed/delayed"
	delayedprom "github.com/godelayed/delayed/contrib/prometheus"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
)

// program returns the path of a program of Debian's package prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed: run make setup", name)
	}
	return path
}

// TestRules has promtool check when the alerts fire, and what autoscalers get.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, cases := range []string{"testdata/alerts_test.yml", "testdata/scaling_test.yml"} {
		out, err := exec.Command(program(t, "promtool"), "test", "rules", cases).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", cases, err, out)
		}
	}
}

// server is a running Prometheus.
type server struct {
	*redistest.Bench

	url string
}

// output is what a program has written, as a bench shows it.
type output func() string

func (o output) String() string { return o() }

// startPrometheus starts a Prometheus that scrapes a page and knows all rules.
func startPrometheus(t *testing.T, b *redistest.Bench, page string) *server {
	t.Helper()
	dir := t.TempDir()
	alerts, err := filepath.Abs("alerts.yml")
	b.Must(err)
	scaling, err := filepath.Abs("scaling.yml")
	b.Must(err)
	target, err := url.Parse(page)
	b.Must(err)
	config := filepath.Join(dir, "prometheus.yml")
	b.Must(os.WriteFile(config, fmt.Appendf(nil, `
global: { scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms }
rule_files: [%q, %q]
scrape_configs:
  - job_name: tasks
    static_configs: [{ targets: [%q] }]
`, alerts, scaling, target.Host), 0o600))
	p, err := childproc.Start(exec.Command(program(t, "prometheus"), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0"))
	b.Must(err)
	t.Cleanup(p.Kill)
	b.Log = output(p.Output)
	s := &server{Bench: b}
	listening := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	b.Until("Prometheus listens", func() bool {
		m := listening.FindStringSubmatch(p.Output())
		if m != nil {
			s.url = "http://" + m[1]
		}
		return m != nil
	})
	b.Until("Prometheus is ready", func() bool {
		resp, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return s
}

// get asks the API of Prometheus.
func (s *server) get(path string, args url.Values, data any) {
	s.T.Helper()
	resp, err := http.Get(s.url + "/api/v1/" + path + "?" + args.Encode())
	s.Must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	s.Must(err)
	reply := struct {
		Status string
		Data   any
	}{Data: data}
	if err := json.Unmarshal(body, &reply); err != nil || reply.Status != "success" {
		s.T.Fatalf("%s %v: %v\n%s", path, args, err, body)
	}
}

// numbers returns how many series a query has now, those that are not a number left out.
func (s *server) numbers(query string) (n int) {
	s.T.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	s.get("query", url.Values{"query": {query}}, &data)
	for _, r := range data.Result {
		text, ok := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			s.T.Fatalf("%s: %v", query, r)
		}
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// rules returns the queries of the alerts as Prometheus has read them, and the names of the series that other rules
// record. Comparisons of the alerts hold for all values, so that they return what is compared.
func (s *server) rules() []string {
	s.T.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Query, Type string }
		}
	}
	s.get("rules", nil, &data)
	compares := regexp.MustCompile(`\) (>|==) [0-9.]+`)
	var queries []string
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Type == "recording" {
				queries = append(queries, r.Name)
				continue
			}
			if !compares.MatchString(r.Query) {
				s.T.Errorf("%s compares nothing: %s", r.Name, r.Query)
			}
			queries = append(queries, compares.ReplaceAllString(r.Query, ") >= 0"))
		}
	}
	return queries
}

// dashboard returns the queries of the dashboard, with values in place of its variables.
func dashboard(b *redistest.Bench) (queries []string) {
	b.T.Helper()
	text, err := os.ReadFile("dashboard.json")
	b.Must(err)
	var page struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	b.Must(json.Unmarshal(text, &page))
	values := strings.NewReplacer("$__rate_interval", "1m", "$job", "tasks", "$queue", ".*")
	for _, p := range page.Panels {
		if len(p.Targets) == 0 {
			b.T.Errorf("panel %s asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			queries = append(queries, values.Replace(target.Expr))
		}
	}
	names := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, v := range page.Templating.List {
		if v.Definition == "" {
			continue // the data source
		}
		m := names.FindStringSubmatch(v.Definition)
		if m == nil || m[2] != v.Name {
			b.T.Fatalf("variable %s is %s: expected label_values", v.Name, v.Definition)
		}
		queries = append(queries, fmt.Sprintf("count by (%s) (%s)", m[2], values.Replace(m[1])))
	}
	return queries
}

// TestPrometheus has a Prometheus scrape a queue whose workers are busy, and asks it all that the dashboard and the
// rules ask.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Shared(t))
	reg := b.register(delayedprom.Config{Memory: true, OnError: func(err error) { t.Error(err) }})
	page := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError,
	}))
	t.Cleanup(page.Close)
	b.work(welcome, fails, sleeps)
	s := startPrometheus(t, b.Bench, page.URL)
	left := append(dashboard(b.Bench), s.rules()...)
	if len(left) < 40 {
		t.Fatalf("only %d queries were found", len(left))
	}
	const slow = 5 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	for len(left) > 0 {
		// A rate takes two samples between which something has happened.
		_, err := b.q.DelayMany(ctx, delayed.Call(welcome, 1), delayed.Call(fails, 2), delayed.Call(sleeps, slow))
		b.Must(err)
		b.delay(welcome, []any{3}, delayed.In(time.Millisecond))
		var open []string
		for _, query := range left {
			if s.numbers(query) == 0 {
				open = append(open, query)
			}
		}
		left = open
		select {
		case <-ctx.Done():
			t.Fatalf("these return no series:\n%s", strings.Join(left, "\n"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
