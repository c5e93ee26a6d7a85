package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/web"
)

// Functions that tests delay.

func welcome(context.Context, int) error { return nil }

func fails(context.Context) error { return errors.New("mailbox full") }

// path returns the path of a function of this package.
func path(fn string) string { return "github.com/godelayed/delayed/web_test." + fn }

// figure returns the number and the note of a figure on a page.
func figure(page, name string) (value, note string) {
	_, rest, _ := strings.Cut(page, "<dt>"+name+"</dt>")
	rest, _, _ = strings.Cut(rest, "</div>")
	value, note, _ = strings.Cut(rest, `<dd class="note">`)
	strip := regexp.MustCompile("<[^>]*>")
	return strip.ReplaceAllString(value, ""), strip.ReplaceAllString(note, "")
}

// row returns the row of a key in a table.
func row(page, key string) string {
	_, rest, _ := strings.Cut(page, `<tr data-key="`+key+`">`)
	rest, _, _ = strings.Cut(rest, "</tr>")
	return rest
}

// picture returns the figure of a chart.
func picture(page, id string) string {
	_, rest, _ := strings.Cut(page, `<figure class="chart card" id="`+id+`">`)
	rest, _, _ = strings.Cut(rest, "</figure>")
	return rest
}

func TestOverviewOfNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	page := b.get(web.Viewer, "")
	b.has(page, "No queues yet", "delayed.NewQueue(", "An administrator can enqueue")
	b.hasNot(page, `<table`, `href="enqueue"><`, `class="figures"`)
	b.has(b.get(web.Admin, ""), `<a class="button" href="enqueue">`)
}

// TestOverview has workers run tasks of two queues, and finds what they have done, and what is wrong.
func TestOverview(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(delayed.WorkerConfig{Concurrency: 3}, welcome, fails)
	for i := range 7 {
		_, err := b.q.Delay(welcome, i)
		b.Must(err)
	}
	for range 5 {
		_, err := b.q.With(delayed.MaxRetry(0)).Delay(fails)
		b.Must(err)
	}
	_, err := b.q.With(delayed.In(time.Hour)).Delay(welcome, 1)
	b.Must(err)
	_, err = b.q.Enqueue(bg, delayed.NewGoTask("app/old.Gone"))
	b.Must(err)
	other := delayed.NewQueue("other", b.rdb)
	for i := range 3 {
		_, err := other.Delay(welcome, i)
		b.Must(err)
	}
	b.Must(other.Pause(bg))
	b.Must(other.SetWeight(bg, 7))
	var page string
	failing := `5 of 5 runs of web_test.fails failed in the last 15 min (100 %).`
	b.Until("the page knows of all", func() bool { // figures and problems are read at different times
		page = b.get(web.Viewer, "")
		_, note := figure(page, "Failed")
		return note == "5 of 12 runs" && strings.Contains(page, failing) && strings.Contains(page, "old.Gone") &&
			!strings.Contains(page, "being read")
	})
	for name, want := range map[string]string{
		"Pending": "3", "Active": "0", "Retry": "0", "Archived": "5", "Failed": "42 %", "Executors busy": "0 / 3",
	} {
		if got, _ := figure(page, name); got != want {
			t.Errorf("%s is %s, expected %s", name, got, want)
		}
	}
	b.has(page,
		`<a href="tasks?state=pending">3</a>`,
		`<a href="queue?name=other">other</a>: 3 tasks wait, and no worker serves it. <small>Since <time`,
		`<a href="queue?name=other">other</a>: paused, and 3 tasks wait.`, "To do: resume it.</small>",
		`<a href="queue?name=mail">mail</a>: 1 task is parked because no worker can run it: old.Gone (unknown func`)
	b.hasNot(page, "All is well", `style="`, "onclick")
	b.has(row(page, "mail"), `<a href="queue?name=mail">mail</a>`, `class="spark"`, `title="12 runs in the last hour"`,
		`href="tasks?queue=mail&amp;state=scheduled">1</a>`, `href="tasks?queue=mail&amp;state=archived">5</a>`,
		`href="tasks?queue=mail&amp;state=parked">1</a>`, `title="of 12 runs">5</a>`,
		`<a href="workers?queue=mail">1</a>`)
	b.has(row(page, "other"), "paused</span>", "weight 7", `href="tasks?queue=other&amp;state=pending">3</a>`)
	b.hasNot(row(page, "other"), `class="spark"`)
	b.has(picture(page, "runs"), `aria-label="Runs: 12 runs, of which 5 failed"`, `class="column s3"`,
		`class="column s2"`, "<title>", "<caption", "succeeded<th")
	b.has(picture(page, "wait"), `class="line s1"`, "p50 ")
	b.has(picture(page, "took"), `class="line s4"`)

	one := b.get(web.Viewer, "?queue=other")
	b.has(one, "Overview of other", `<a href="tasks?queue=other&amp;state=pending">3</a>`,
		"Nothing has run in this time.", `href="./?queue=other&amp;span=day"`)
	b.hasNot(one, "old.Gone", `<tr data-key="mail">`)
	if a := b.ask(web.Viewer, http.MethodGet, "?queue=nobody%1b", nil); a.Status != http.StatusNotFound ||
		!strings.Contains(a.Body, `nobody\x1b`) {
		t.Errorf("a queue that nobody has used: %d, %s", a.Status, a.Body)
	}
	for span, bucket := range map[string]string{"day": "per 15 min", "quarter": "per day", "nonsense": "per 30 s"} {
		b.Until("the page of a "+span+" knows of all", func() bool {
			page = b.get(web.Viewer, "?span="+span)
			_, note := figure(page, "Failed")
			return note == "5 of 12 runs"
		})
		b.has(picture(page, "runs"), bucket, `class="column s3"`)
		b.has(row(page, "mail"), `title="12 runs in the last hour"`)
	}
}

func TestCalmOverview(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(delayed.WorkerConfig{}, welcome)
	b.has(b.get(web.Viewer, ""), "Nothing has run in this time.", `<tr data-key="mail">`)
	b.has(b.get(web.Viewer, "?queue=mail"), "All is well") // the settings of the test's Redis do not count
}

func TestOverviewWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	h, err := web.New(rdb, web.Config{Authorize: func(*http.Request) (web.User, error) {
		return web.User{Name: "ann", Role: web.Viewer}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	b := &bench{Bench: redistest.NewBench(t, server), h: h, q: delayed.NewQueue(queueName, rdb)}
	_, err = b.q.Delay(welcome, 1)
	b.Must(err)
	b.get(web.Viewer, "")
	b.get(web.Viewer, "queue?name=mail")
	server.Stop(t)
	for _, address := range []string{"", "queue?name=mail"} {
		b.Until("the page says that Redis is down", func() bool {
			a := b.ask(web.Viewer, http.MethodGet, address, nil)
			return a.Status == http.StatusServiceUnavailable && strings.Contains(a.Body, "Service Unavailable") &&
				strings.Contains(a.Body, "Overview</a>")
		})
	}
}

// seed makes queues with tasks in most states, whose functions have run all the time.
func (b *bench) seed(queues, seconds int) {
	b.T.Helper()
	src, _, _, err := redisstore.DialSources(redistest.Shared(b.T).URL())
	b.Must(err)
	prefix := strings.TrimSuffix(b.Name, queueName)
	now := time.UnixMilli(redistest.Time(b.T, b.Conn))
	for i := range queues {
		name := fmt.Sprintf("queue-%04d", i)
		q := delayed.NewQueue(name, b.rdb)
		for range 2 {
			_, err := q.Delay(welcome, i)
			b.Must(err)
		}
		_, err := q.With(delayed.In(time.Hour)).Delay(welcome, i)
		b.Must(err)
		b.Do("HSET", prefix+name+"_stats:"+now.UTC().Format("20060102"), "processed", 1) // else it is idle
		s := redisstore.NewStore(src, prefix, name)
		if seconds > 0 { // workers count runs there too
			s.RedisTime(now)
			b.Do("HINCRBY", s.StatsKey(), "processed", 1000*seconds)
		}
		minutes := map[int64][]redisstore.MetricsPart{}
		for k := range seconds {
			at := now.Truncate(time.Second).Add(-time.Duration(k*30) * time.Second)
			var sum metrics.Sample
			sum.Runs, sum.Failed = uint64(1000+k*i), uint64(k%20)
			for j := range 20 {
				sum.Wait.Add(time.Duration(k*j) * 717 * time.Microsecond)
				sum.Run.Add(time.Duration(k+j) * 1717 * time.Microsecond)
			}
			minute := at.Unix() / 60
			minutes[minute] = append(minutes[minute], redisstore.MetricsPart{
				Grain: redisstore.GrainSecond, At: at, Function: "app/mail.Welcome", Sample: sum,
			})
		}
		for _, parts := range minutes {
			_, err := s.AddMetrics(bg, parts)
			b.Must(err)
		}
	}
}

// maxOverview bounds the size of the overview of twenty busy queues.
const maxOverview = 150 << 10

func TestOverviewIsLight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	begun := time.Now()
	b.seed(20, 120)
	var page string
	b.Until("all has been read", func() bool {
		page = b.get(web.Viewer, "")
		return !strings.Contains(page, "being read")
	})
	moved := int(time.Since(begun) / (30 * time.Second)) // by so many buckets, on a busy machine
	if hits := strings.Count(picture(page, "runs"), `class="hit"`); hits < 119-moved {
		t.Errorf("%d of 120 buckets have something, expected at least %d", hits, 119-moved)
	}
	if n := strings.Count(page, `<tr data-key="queue-`); n != 20 {
		t.Errorf("%d queues are listed", n)
	}
	t.Logf("the page has %d KiB", len(page)>>10)
	if len(page) > maxOverview {
		t.Errorf("the page has %d bytes, expected at most %d", len(page), maxOverview)
	}
}

// TestOverviewOfManyQueues shows a page of a thousand queues, and finds, sorts and turns pages.
func TestOverviewOfManyQueues(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *web.Config) { c.Refresh = 2 * time.Second })
	b.seed(1000, 0)
	_, err := delayed.NewQueue("queue-0777", b.rdb).Delay(welcome, 1)
	b.Must(err)
	begun := time.Now()
	page := b.get(web.Viewer, "")
	first := time.Since(begun)
	if n := strings.Count(page, `<tr data-key="`); n > 60 {
		t.Errorf("%d rows", n)
	}
	b.has(page, "and 991 more", "1 to 50 of 1\u202f000", `rel="next"`, `<tr data-key="queue-0049">`, "per minute")
	b.hasNot(page, `rel="prev"`, `<tr data-key="queue-0050">`)
	begun = time.Now()
	page = b.get(web.Viewer, "?sort=pending&page=20")
	t.Logf("the first page took %v, the next one %v, and has %d KiB", first, time.Since(begun), len(page)>>10)
	b.has(page, "951 to 1\u202f000 of 1\u202f000", `rel="prev"`, `aria-sort="descending"`)
	b.has(b.get(web.Viewer, "?sort=pending"), "queue-0777")
	b.hasNot(b.get(web.Viewer, "?sort=pending&page=2"), `<tr data-key="queue-0777">`)
	page = b.get(web.Viewer, "?find=E-012&page=-3&sort=failed&span=day")
	b.has(page, `<tr data-key="queue-0120">`, `<tr data-key="queue-0129">`, `value="E-012"`,
		`<input type="hidden" name="span" value="day">`)
	b.hasNot(page, `<tr data-key="queue-0000">`, `rel="next"`)
	b.has(b.get(web.Viewer, "?find=<x>"), "No queue has “&lt;x&gt;” in its name")
	if n := strings.Count(b.get(web.Viewer, "?all=1"), "no worker serves it"); n != 1000 {
		t.Errorf("%d problems are shown, expected all", n)
	}
}
