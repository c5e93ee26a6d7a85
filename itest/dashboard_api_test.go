//go:build unix

package itest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/web"
)

const dashboardToken = "a token of the admin"

func welcome(context.Context, int, string) error { return nil }

// dashboard serves the dashboard of a queue "mail" with a worker, an archived task and one that waits.
func dashboard(t *testing.T) *httptest.Server {
	t.Helper()
	server := redistest.Shared(t)
	b := redistest.NewBench(t, server)
	dialled, err := delayed.Dial(server.URL())
	b.Must(err)
	t.Cleanup(func() { dialled.Close() })
	rdb := dialled.WithPrefix(b.Name + ":")
	q := delayed.NewQueue("mail", rdb)
	log := new(redistest.Log)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"mail"}, Concurrency: 1, Logger: log.Logger(),
	})
	b.Must(err)
	b.Must(w.Register(delayed.Func(welcome, delayed.Name("mail.Welcome"))))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		b.Must(redistest.Await(b, "the worker's end", ended))
	})
	h, err := web.New(rdb, web.Config{
		Tokens: []web.Token{{User: web.User{Name: "ann", Role: web.Admin}, Secret: dashboardToken}},
	})
	b.Must(err)
	s := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); s.Close(); s.Client().CloseIdleConnections() })
	_, err = q.With(delayed.TaskID("7c3q9v5tn8w2x0y4"), delayed.Deadline(time.Now().Add(-time.Hour))).
		Delay(delayed.Func(welcome, delayed.Name("mail.Welcome")), 1, "en")
	b.Must(err)
	b.Until("the task is archived and the worker known", func() bool {
		return strings.Contains(ask(t, s, http.MethodGet, "queues/mail"), `"archived":1`) &&
			strings.Contains(ask(t, s, http.MethodGet, "functions"), "mail.Welcome")
	})
	return s
}

func ask(t *testing.T, s *httptest.Server, method, path string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/v1/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+dashboardToken)
	answer, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOpenAPIAnswers holds answers against the description.
func TestOpenAPIAnswers(t *testing.T) {
	s := dashboard(t)
	description, err := jsonschema.UnmarshalJSON(strings.NewReader(ask(t, s, http.MethodGet, "openapi.json")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	const root = "mem:///openapi.json"
	if err := c.AddResource(root, description); err != nil {
		t.Fatal(err)
	}
	all, _ := description.(map[string]any)
	components, _ := all["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for name := range schemas {
		if _, err := c.Compile(root + "#/components/schemas/" + name); err != nil {
			t.Errorf("%s is no schema: %v", name, err)
		}
	}
	for address, name := range map[string]string{
		"me": "Me", "queues": "Queues", "queues/mail": "OneQueue", "queues/mail/history": "History",
		"stats": "Stats", "metrics?per=day": "Metrics", "backlog?queue=mail": "Scale",
		"tasks?queue=mail": "Lists", "tasks/7c3q9v5tn8w2x0y4": "Found", "jobs": "Jobs", "functions": "Functions",
		"workers": "Workers", "entries": "Entries", "groups": "Groups", "audit": "Audit", "jobs/none": "Problem",
		"POST queues/mail/pause": "Did", "DELETE tasks/none": "Problem",
	} {
		method, path, ok := strings.Cut(address, " ")
		if !ok {
			method, path = http.MethodGet, address
		}
		text := ask(t, s, method, path)
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v in %s", address, err, text)
		}
		schema, err := c.Compile(root + "#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v in %s", address, err, text)
		}
	}
}

// TestAPIPage runs the examples of docs/API.md.
func TestAPIPage(t *testing.T) {
	page, err := os.ReadFile("../docs/API.md")
	if err != nil {
		t.Fatal(err)
	}
	s := dashboard(t)
	n := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		commands := strings.ReplaceAll(block[1], "\\\n", "")
		for command := range strings.Lines(commands) {
			n++
			// Events do not end by themselves.
			command = strings.Replace(command, "curl", "curl --fail-with-body --silent --show-error --max-time 2", 1)
			cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
			cmd.Env = append(os.Environ(), "URL="+s.URL, "TOKEN="+dashboardToken)
			out, err := cmd.CombinedOutput()
			if strings.Contains(command, "events") {
				if !strings.Contains(string(out), ": open") {
					t.Errorf("%s: %s", command, out)
				}
			} else if err != nil || !strings.HasPrefix(string(out), "{") {
				t.Errorf("%s: %v: %s", command, err, out)
			}
		}
	}
	if n < 10 {
		t.Errorf("the page has only %d examples", n)
	}
}

// TestPythonDashboard uses the client of the Python package.
func TestPythonDashboard(t *testing.T) {
	s := dashboard(t)
	cmd := pythonCommand(t, nil, "dashboard.py", s.URL+"/", dashboardToken)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "all is well") {
		t.Errorf("%v: %s", err, out)
	}
}
