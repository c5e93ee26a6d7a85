package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// dashboardCommand runs the command `dashboard`: it measures how long pages of the dashboard take with a full queue and
// a worker beside, how large they are, and what open pages cost its server and Redis.
func dashboardCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dashboard", flag.ExitOnError)
	n := flags.Int("n", 1_000_000, "pending tasks; a tenth as many are scheduled, and as many archived")
	rounds := flags.Int("rounds", 8, "how often each page is asked for")
	open := flags.Duration("open", 20*time.Second, "how long pages are open")
	_ = flags.Parse(args)
	p, err := peerNamed("delayed")
	if err != nil {
		return err
	}
	b, err := makeBed(p, aofEverysec, bare)
	if err != nil {
		return err
	}
	defer b.close()
	defer context.AfterFunc(ctx, b.abort)()
	site, err := openInspected(b)
	if err != nil {
		return err
	}
	defer site.close()
	if err := site.fill(*n); err != nil {
		return err
	}
	if err := b.fill(site.producer, *n, 0, 0); err != nil {
		return err
	}
	worker, err := b.driver()
	if err != nil {
		return err
	}
	defer worker.close()
	if _, err := worker.do(&request{Op: "work", Concurrency: baseConcurrency, Handler: "100ms"}); err != nil {
		return err
	}
	board, err := startDashboard(ctx, b.addr)
	if err != nil {
		return err
	}
	defer board.end()
	pages, err := site.addresses(ctx)
	if err != nil {
		return err
	}
	if err := board.measurePages(ctx, pages, *rounds); err != nil {
		return err
	}
	return board.measureOpen(ctx, b, pages, *open)
}

// addresses returns the addresses of pages that show something.
func (s *inspected) addresses(ctx context.Context) ([]string, error) {
	scheduled, err := s.ins.Tasks(ctx, s.name, inspect.Query{State: state.Scheduled, Limit: 1})
	if err != nil || len(scheduled.Tasks) == 0 {
		return nil, errors.Join(err, errors.New("no task is scheduled"))
	}
	workers, err := s.ins.Workers(ctx)
	if err != nil || len(workers) == 0 {
		return nil, errors.Join(err, errors.New("no worker is there"))
	}
	functions, err := s.ins.Functions(ctx)
	if err != nil || len(functions) == 0 {
		return nil, errors.Join(err, errors.New("no function is published"))
	}
	name, path := url.QueryEscape(s.name), url.QueryEscape(functions[0].Path)
	pages := []string{"", "?span=day", "?span=quarter", "queue?name=" + name}
	for _, of := range inspect.States {
		pages = append(pages, "tasks?queue="+name+"&state="+of.String())
	}
	pages = append(pages, "task?queue="+name+"&id="+url.QueryEscape(scheduled.Tasks[0].ID),
		"functions", "function?queue="+name+"&path="+path, "workers", "worker?id="+url.QueryEscape(workers[0].ID),
		"periodic", "groups", "parked", "deaths", "enqueue?queue="+name+"&function="+path, "audit", "jobs",
		"tasks?queue="+name+"&state=pending&text=none+has+this", "search?q="+url.QueryEscape(functions[0].Path))
	return append(pages, apiReads(url.PathEscape(s.name), url.PathEscape(scheduled.Tasks[0].ID),
		url.PathEscape(workers[0].ID))...), nil
}

// apiReads returns the addresses of all reads of the API, but for streams and what needs a job or an entry.
func apiReads(queue, task, worker string) (reads []string) {
	for _, read := range []string{
		"me", "openapi.json", "queues", "queues/" + queue,
		"queues/" + queue + "/history?days=90", "stats", "metrics?queue=" + queue + "&last=1h",
		"backlog?queue=" + queue, "functions", "workers", "workers/" + worker, "groups", "entries", "jobs", "audit",
		"tasks/" + task + "?queue=" + queue, "tasks?queue=" + queue + "&state=pending&text=none+has+this",
	} {
		reads = append(reads, "api/v1/"+read)
	}
	for _, of := range inspect.States {
		reads = append(reads, "api/v1/tasks?queue="+queue+"&state="+of.String())
	}
	return reads
}

// dashboard is a process that serves one.
type dashboard struct {
	cmd *exec.Cmd
	url string
}

func startDashboard(ctx context.Context, addr string) (*dashboard, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := &dashboard{cmd: exec.CommandContext(ctx, self, "dashboard-server", addr)}
	d.cmd.Stderr = os.Stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	d.url = "http://" + strings.TrimSpace(line) + "/"
	return d, err
}

func (d *dashboard) end() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// get returns how many bytes a page has.
func (d *dashboard) get(ctx context.Context, page string) (int64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+page, http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", page, answer.Status)
	}
	return n, err
}

// aPageIsKept is a little longer than the dashboard uses again what it has read for another page. The few things that
// it keeps for ten seconds are read anew in each round, because a round takes longer.
const aPageIsKept = 1100 * time.Millisecond

// measurePages prints how long each page takes, with its way over the loopback interface, and its size.
func (d *dashboard) measurePages(ctx context.Context, pages []string, rounds int) error {
	took, size := map[string][]float64{}, map[string]int64{}
	for range rounds {
		for _, p := range pages {
			select {
			case <-time.After(aPageIsKept):
			case <-ctx.Done():
				return ctx.Err()
			}
			start := time.Now()
			n, err := d.get(ctx, p)
			if err != nil {
				return err
			}
			took[p] = append(took[p], float64(time.Since(start))/float64(time.Millisecond))
			size[p] = n
		}
	}
	fmt.Printf("| page | median [ms] | longest [ms] | size [KiB] |\n|---|---:|---:|---:|\n")
	for _, p := range pages {
		times := took[p]
		slices.Sort(times)
		fmt.Printf("| `/%s` | %s | %s | %s |\n", p, number(quantile(times, 0.5)), number(times[len(times)-1]),
			number(float64(size[p])/1024))
	}
	return nil
}

// measureOpen prints what the server and Redis do while pages are open: as many of each as fit in the number.
func (d *dashboard) measureOpen(ctx context.Context, b *bed, pages []string, open time.Duration) error {
	pages = slices.DeleteFunc(slices.Clone(pages), func(p string) bool {
		return strings.HasPrefix(p, "api/") || strings.HasPrefix(p, "enqueue")
	})
	fmt.Printf("\n| open pages | CPU of the dashboard [%%] | Redis commands/s | events/s | KiB a minute and page |\n" +
		"|---:|---:|---:|---:|---:|\n")
	for _, n := range []int{0, len(pages), 100, 200} {
		if err := d.openPages(ctx, b, pages, n, open); err != nil {
			return err
		}
	}
	fmt.Println("\nThe overview alone:")
	return d.openPages(ctx, b, pages[:1], 1, open)
}

func (d *dashboard) openPages(ctx context.Context, b *bed, pages []string, n int, open time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, open+5*time.Second)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	failed := make(chan error, n)
	var events, bytes atomic.Int64
	for i := range n {
		group.Go(func() { failed <- d.follow(ctx, pages[i%len(pages)], &events, &bytes) })
	}
	settled := time.NewTimer(5 * time.Second) // the pages are open, and were made once
	select {
	case <-settled.C:
	case err := <-failed:
		return err
	}
	before, err := b.state()
	if err != nil {
		return err
	}
	cpu, start := treeCPU(d.cmd.Process.Pid), time.Now()
	events.Store(0)
	bytes.Store(0)
	select {
	case <-time.After(open - 5*time.Second):
	case err := <-failed:
		return err
	}
	after, err := b.state()
	if err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	fmt.Printf("| %d | %s | %s | %s | %s |\n", n, number(100*(treeCPU(d.cmd.Process.Pid)-cpu)/seconds),
		number(after.since(before).commands()/seconds), number(float64(events.Load())/seconds),
		number(float64(bytes.Load())/1024/seconds*60/float64(max(n, 1))))
	return nil
}

// follow has a page open until ctx ends.
func (d *dashboard) follow(ctx context.Context, page string, events, bytes *atomic.Int64) error {
	if page == "" || page[0] == '?' {
		page = "./" + page
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"live?u="+url.QueryEscape(page), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("live page %s: %s", page, answer.Status)
	}
	lines := bufio.NewReaderSize(answer.Body, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		bytes.Add(int64(len(line)))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case strings.HasPrefix(line, "event: main"):
			events.Add(1)
		}
	}
}
