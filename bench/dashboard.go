package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web"
)

// dashboardCommand runs the command `dashboard`: it measures how long pages of the dashboard take with a full queue and
// a worker beside, how large they are, and what open pages cost its server and Redis.
func dashboardCommand(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("dashboard", flag.ExitOnError)
	n := flags.Int("n", 1_000_000, "pending tasks; a tenth as many are scheduled, and as many archived")
	rounds := flags.Int("rounds", 8, "how often each page is asked for")
	open := flags.Duration("open", 20*time.Second, "how long pages are open")
	_ = flags.Parse(args)
	b, err := makeBed(ctx, delayedPeer, aofEverysec, 0)
	if err != nil {
		return err
	}
	defer b.close()
	defer recoverFailure(&err)
	b.fullQueue(*n, 100*time.Millisecond)
	board := &dashboard{bed: b}
	board.cmd, err = itself(ctx, "dashboard-server", b.addr)
	check(err)
	out, err := board.cmd.StdoutPipe()
	check(err)
	check(board.cmd.Start())
	defer func() { _ = board.cmd.Wait() }()
	defer func() { _ = board.cmd.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	check(err)
	board.url = strings.TrimSpace(line) + "/"
	pages, reads := livePages()
	lines := [][]string{{"page", "median [ms]", "longest [ms]", "size [KiB]"}}
	for _, page := range slices.Concat(pages, reads) {
		lines = append(lines, board.measure(ctx, page, *rounds))
	}
	fmt.Printf("%s\n", tableOf(lines, 1))
	lines = [][]string{{"open pages", "CPU of the dashboard [%]", "Redis commands/s", "KiB a minute and page"}}
	for _, n := range []int{0, len(pages), 100, 200} {
		lines = append(lines, board.open(ctx, pages, n, *open))
	}
	fmt.Print(tableOf(lines, 0))
	return nil
}

// livePages returns the addresses of pages that change while they are open, and reads those of the API that programs
// make often, or that take long.
func livePages() (pages, reads []string) {
	pages = []string{
		"./", "./?span=day", "./?span=quarter", "queue?name=" + queueName, "functions", "workers", "periodic", "groups",
		"parked", "deaths", "audit", "jobs", "tasks?queue=" + queueName + "&state=pending&text=none+has+this",
	}
	for _, of := range inspect.States {
		pages = append(pages, "tasks?queue="+queueName+"&state="+of.String())
	}
	for _, read := range []string{
		"queues", "queues/" + queueName, "queues/" + queueName + "/history?days=90", "stats", "workers",
		"metrics?queue=" + queueName + "&last=1h", "tasks?queue=" + queueName + "&state=pending",
		"tasks?queue=" + queueName + "&state=pending&text=none+has+this",
	} {
		reads = append(reads, "api/v1/"+read)
	}
	return pages, reads
}

// dashboard is a process that serves one.
type dashboard struct {
	bed *bed
	cmd *exec.Cmd
	url string
}

// get reads a page until it ends or ctx does, and returns its size in bytes.
func (d *dashboard) get(ctx context.Context, page string) int64 {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+page, http.NoBody)
	check(err)
	answer, err := http.DefaultClient.Do(r)
	if ctx.Err() != nil {
		return 0
	}
	check(err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		check(fmt.Errorf("%s: %s", page, answer.Status))
	}
	n, err := io.Copy(io.Discard, answer.Body)
	if ctx.Err() == nil {
		check(err)
	}
	return n
}

// measure returns how long a page takes, with its way over the loopback interface, and its size. The dashboard uses
// again for a second what it has read for another page.
func (d *dashboard) measure(ctx context.Context, page string, rounds int) []string {
	var took []float64
	var size int64
	for range rounds {
		time.Sleep(1100 * time.Millisecond)
		start := time.Now()
		size = d.get(ctx, page)
		took = append(took, time.Since(start).Seconds()*1000)
	}
	return []string{
		"`/" + page + "`", number(quantile(took, 0.5)), number(quantile(took, 1)), number(float64(size) / 1024),
	}
}

// open returns what the server and Redis do while n pages are open: as many of each as fit in the number.
func (d *dashboard) open(ctx context.Context, pages []string, n int, open time.Duration) []string {
	ctx, cancel := context.WithTimeout(ctx, open)
	defer cancel()
	var group sync.WaitGroup
	errs, sizes := make([]error, n), make([]int64, n)
	for i := range n {
		group.Go(func() {
			defer recoverFailure(&errs[i])
			sizes[i] = d.get(ctx, "live?u="+url.QueryEscape(pages[i%len(pages)]))
		})
	}
	before, cpu := d.bed.state(), treeCPU(d.cmd.Process.Pid)
	<-ctx.Done()
	server, seconds := d.bed.state().since(before), open.Seconds()
	cpu = treeCPU(d.cmd.Process.Pid) - cpu
	group.Wait()
	check(errors.Join(errs...))
	var sum int64
	for _, size := range sizes {
		sum += size
	}
	return []string{
		count(n), number(100 * cpu / seconds), number(server.commands() / seconds),
		number(float64(sum) / 1024 / seconds * 60 / float64(max(n, 1))),
	}
}

// dashboardServer runs the command `dashboard-server`: it serves the dashboard of a Redis server to anybody on this
// machine, as an administrator, until it is killed, and prints its address.
func dashboardServer(_ context.Context, args []string) error {
	rdb, err := delayed.Dial("redis://" + strings.Join(args, " "))
	if err != nil {
		return err
	}
	page, err := web.New(rdb, web.Config{ //nolint:contextcheck // it lives until Close
		Authorize: func(*http.Request) (web.User, error) { return web.User{Name: "bench", Role: web.Admin}, nil },
		APIRate:   -1,
	})
	if err != nil {
		return err
	}
	fmt.Println(httptest.NewServer(page).URL)
	select {}
}
