package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/godelayed/delayed/internal/redistest"
)

// patience bounds every wait: four minutes, because machines of tests are busy, or less if that of all tests is.
var patience = 4 * redistest.Patience

// disposeTimeout bounds how long a test waits until Chromium has forgotten its profile.
const disposeTimeout = 5 * time.Second

// chromium is the browser of all tests.
type chromium struct {
	ctx  context.Context //nolint:containedctx // pages are made from it
	stop func()
	err  error
}

var (
	start   = sync.OnceValue(startChromium)
	started bool // only read after all tests
)

// Main runs the tests of a package and returns the exit code for its TestMain. It stops the browser and the shared
// Redis, and fails when goroutines are left.
func Main(m *testing.M) int {
	code := redistest.Main(m)
	if started {
		start().stop()
	}
	return code
}

// program returns the path of Chromium.
func program() (string, error) {
	if given := os.Getenv("CHROMIUM"); given != "" {
		return given, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("expected Chromium on the PATH, found none: run make setup, or set CHROMIUM")
}

// flags make a browser that does what tests ask, and asks no other hosts for anything.
var flags = []chromedp.ExecAllocatorOption{
	chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
	chromedp.Flag("disable-quic", true),
	chromedp.Flag("disable-background-networking", true),
	chromedp.Flag("disable-component-update", true),
	chromedp.Flag("disable-sync", true),
	chromedp.Flag("disable-default-apps", true),
	chromedp.Flag("disable-extensions", true),
	chromedp.Flag("disable-dev-shm-usage", true), // containers have little of it
	// Neither one process for each site, nor one in advance, nor pages kept for the way back.
	chromedp.Flag("disable-features", "Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,"+
		"site-per-process,IsolateOrigins,SpareRendererForSitePerProcess,BackForwardCache,PaintHolding"),
	chromedp.Flag("disable-site-isolation-trials", true),
	chromedp.Flag("disable-back-forward-cache", true),
	chromedp.Flag("disable-breakpad", true),
	chromedp.Flag("disable-field-trial-config", true),
	chromedp.Flag("disable-domain-reliability", true),
	chromedp.Flag("disable-client-side-phishing-detection", true),
	chromedp.Flag("metrics-recording-only", true),
	chromedp.Flag("no-proxy-server", true), // the pages are on this machine
	chromedp.Flag("password-store", "basic"),
	chromedp.Flag("use-mock-keychain", true),
	chromedp.Flag("lang", "en-GB"),
	// Pages that are not in front are drawn and timed like the others.
	chromedp.Flag("disable-renderer-backgrounding", true),
	chromedp.Flag("disable-background-timer-throttling", true),
	chromedp.Flag("disable-backgrounding-occluded-windows", true),
	chromedp.Flag("hide-scrollbars", false),
	chromedp.WSURLReadTimeout(patience),
}

func startChromium() *chromium {
	started = true
	path, err := program()
	if err != nil {
		return &chromium{err: err, stop: func() {}}
	}
	profile, err := os.MkdirTemp("", "delayed-chromium-")
	if err != nil {
		return &chromium{err: err, stop: func() {}}
	}
	var out strings.Builder
	opts := append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.CombinedOutput(io.Writer(&out)),
	}, flags...)
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	// A newer browser sends events that the client does not know; it says so for each of them.
	ctx, end := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
	c := &chromium{ctx: ctx, stop: func() {
		_ = chromedp.Cancel(ctx) // it waits for the end of the browser
		end()
		endAlloc()
		os.RemoveAll(profile)
	}}
	if err := chromedp.Run(ctx); err != nil {
		c.err = fmt.Errorf("expected that Chromium starts, found: %w\n%s", err, out.String())
	}
	return c
}

// newTab opens a tab with a profile of its own, in a window of its own: without one, Chromium has none to put it in.
func (c *chromium) newTab() (id target.ID, forget func(), err error) {
	ctx := cdp.WithExecutor(c.ctx, chromedp.FromContext(c.ctx).Browser)
	profile, err := target.CreateBrowserContext().WithDisposeOnDetach(true).Do(ctx)
	if err != nil {
		return "", nil, err
	}
	id, err = target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(ctx)
	return id, func() {
		// Chromium does not answer while the page is being replaced, and nobody needs the profile any more.
		ctx, cancel := context.WithTimeout(ctx, disposeTimeout)
		defer cancel()
		_ = target.DisposeBrowserContext(profile).Do(ctx)
	}, err
}
