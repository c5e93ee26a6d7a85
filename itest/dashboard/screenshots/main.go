// Screenshots takes pictures of the dashboard, which examples/dashboard serves meanwhile:
//
//	go run ./dashboard/screenshots -out ../docs/dashboard
//
// With -url it takes them of a dashboard that is there already, by the address for signing in. Arguments are what to
// take: a name, an address, a width, a height and a theme, such as "overview ./ 1400 1000 dark".
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// published are the pictures of README.md.
var published = []string{"overview-light ./ 1400 1000 light", "overview-dark ./ 1400 1000 dark"}

func main() {
	out := flag.String("out", ".", "folder of the pictures")
	address := flag.String("url", "", "address for signing in to a dashboard that runs; empty: that of the example")
	after := flag.Duration("after", 3*time.Minute, "how long the example runs before, so that its charts are full")
	flag.Parse()
	shots := flag.Args()
	if len(shots) == 0 {
		shots = published
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *out, *address, *after, shots)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out, address string, after time.Duration, shots []string) error {
	if address == "" {
		found, end, err := example(ctx)
		if err != nil {
			return err
		}
		defer end()
		address = found
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	target, err := url.Parse(address)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, shot := range shots {
		if err := take(ctx, target, out, shot); err != nil {
			return fmt.Errorf("%s: %w", shot, err)
		}
	}
	return nil
}

// take takes one picture. Chromium sees the dashboard through a proxy that signs in with the secret of the address.
func take(ctx context.Context, dashboard *url.URL, out, shot string) error {
	var name, page, theme string
	var width, height int64
	if _, err := fmt.Sscanf(shot, "%s %s %d %d %s", &name, &page, &width, &height, &theme); err != nil {
		return errors.New(`expected a name, an address, width, height and theme, as in "overview ./ 1400 1000 dark"`)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = dashboard.Scheme, dashboard.Host
		r.Out.Header.Set("Authorization", "Bearer "+dashboard.Fragment)
		r.Out.Header.Set("Cookie", "delayed_theme="+theme)
	}})
	defer proxy.Close()
	defer proxy.CloseClientConnections() // those of live pages
	target, err := dashboard.Parse(page)
	if err != nil {
		return err
	}
	target.Host, target.Fragment = strings.TrimPrefix(proxy.URL, "http://"), ""
	profile, err := os.MkdirTemp("", "delayed-chromium-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile)
	file, err := filepath.Abs(filepath.Join(out, name+".png"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--no-proxy-server", "--hide-scrollbars", "--user-data-dir="+profile, "--screenshot="+file,
		fmt.Sprintf("--window-size=%d,%d", width, height), target.String()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	fmt.Println(file)
	return nil
}

var signIn = regexp.MustCompile(`http://\S+login\S+`)

// example starts examples/dashboard and returns its address for signing in.
func example(ctx context.Context) (address string, end func(), err error) {
	binary := filepath.Join(os.TempDir(), fmt.Sprintf("delayed-dashboard-%d", os.Getpid()))
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "../examples/dashboard")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "-listen", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}
	end = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		os.Remove(binary)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if address = signIn.FindString(lines.Text()); address != "" {
			return address, end, nil
		}
	}
	end()
	return "", nil, errors.New("expected that the example prints its address, found nothing like it")
}
