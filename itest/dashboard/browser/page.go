package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is a tab with cookies and storage of its own. Its methods end the test when the browser cannot do what they ask.
// They may be called by one goroutine only.
type Page struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // chromedp knows pages by it

	mu         sync.Mutex
	complaints []string
	forgiven   []string
}

// reported is the function by which pages tell of breaches of their policy.
const reported = "__testReports"

// watchPolicy runs in each document before the scripts of the page.
const watchPolicy = `addEventListener("securitypolicyviolation", (e) => ` + reported +
	`(e.violatedDirective + " forbids " + (e.blockedURI || "inline") + " " + e.sourceFile + ":" + e.lineNumber + " " +
	e.sample));`

// Open returns an empty page of 1400 by 1000 pixels that is closed at the end of the test.
func Open(t testing.TB) *Page {
	t.Helper()
	c := start()
	if c.err != nil {
		t.Fatalf("browser: %v", c.err)
	}
	tab, forget, err := c.newTab()
	if err != nil {
		t.Fatalf("browser: no new page: %v", err)
	}
	ctx, end := chromedp.NewContext(c.ctx, chromedp.WithTargetID(tab))
	p := &Page{t: t, ctx: ctx}
	t.Cleanup(func() {
		end()
		forget()
		for _, text := range p.Complaints() {
			t.Errorf("the browser complained: %s", text)
		}
	})
	chromedp.ListenTarget(ctx, p.hear)
	p.Run(
		// chromedp follows changes of documents for its selectors, which Page does not use: live pages change often.
		css.Disable(), dom.Disable(),
		log.Enable(), runtime.Enable(), runtime.AddBinding(reported),
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(watchPolicy).Do(ctx)
			return err
		}),
	)
	p.Size(1400, 1000)
	return p
}

// hear collects what goes wrong in a page.
func (p *Page) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			var words []string
			for _, arg := range e.Args {
				words = append(words, string(arg.Value)+arg.Description)
			}
			p.complain("console." + string(e.Type) + ": " + strings.Join(words, " "))
		}
	case *runtime.EventExceptionThrown:
		p.complain(e.ExceptionDetails.Error())
	case *runtime.EventBindingCalled:
		if e.Name == reported {
			p.complain("content security policy: " + e.Payload)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			p.complain(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		p.complain("a dialog opened: " + e.Message) // see Accept
	}
}

func (p *Page) complain(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = append(p.complaints, text)
}

// Complaints returns what was collected so far: errors and warnings of the console, exceptions that no script has
// caught, answers with an error status, breaches of the content security policy, dialogs. Texts that contain a forgiven
// one are left out.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.complaints), func(text string) bool {
		return slices.ContainsFunc(p.forgiven, func(part string) bool { return strings.Contains(text, part) })
	})
}

// Forgive lets the page complain about what the test brings about itself, such as "status of 404".
func (p *Page) Forgive(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgiven = append(p.forgiven, part)
}

// Run runs actions of chromedp, and ends the test if one fails or takes too long.
func (p *Page) Run(actions ...chromedp.Action) {
	p.t.Helper()
	if err := p.try(actions...); err != nil {
		p.t.Fatalf("browser: %v\ncomplaints: %q", err, p.Complaints())
	}
}

// try runs actions of chromedp.
func (p *Page) try(actions ...chromedp.Action) error {
	// The tab ends with the context of the first call.
	if c := chromedp.FromContext(p.ctx); c.Target == nil {
		if err := chromedp.Run(p.ctx); err != nil {
			return fmt.Errorf("no new page: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// Go opens an address and waits until the page is loaded and its scripts have run.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.Run(chromedp.Navigate(url))
}

// Size sets the size of the window, in pixels of CSS. Less than 600 pixels in width are a phone.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	var opts []chromedp.EmulateViewportOption
	if width < 600 {
		opts = append(opts, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	p.Run(chromedp.EmulateViewport(width, height, opts...))
}

// Dark lets the system prefer dark colours, or light ones.
func (p *Page) Dark(dark bool) {
	p.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: value}
	p.Run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{feature}))
}

// Eval evaluates an expression of JavaScript, waits for it if it is a promise, and stores its value in result, which
// may be nil. The content security policy of the page does not hold for it.
func (p *Page) Eval(expression string, result any) {
	p.t.Helper()
	p.Run(evaluate(expression, result))
}

func evaluate(expression string, result any) chromedp.Action {
	return chromedp.Evaluate(expression, result, func(params *runtime.EvaluateParams) *runtime.EvaluateParams {
		return params.WithAwaitPromise(true)
	})
}

// replaced reports whether an evaluation failed because the page went to another address meanwhile.
func replaced(err error) bool {
	var failed *cdproto.Error
	return errors.As(err, &failed) && strings.Contains(failed.Message, "navigated or closed")
}

// Until waits until an expression of JavaScript is true, on whichever page is there then.
func (p *Page) Until(what, expression string) {
	p.t.Helper()
	pause := 20 * time.Millisecond // between two looks, which cost the browser time that others need
	for deadline := time.Now().Add(patience); ; {
		var is bool
		if err := p.try(evaluate("!!("+expression+")", &is)); err != nil && !replaced(err) {
			p.t.Fatalf("browser: until %s: %v\ncomplaints: %q", what, err, p.Complaints())
		}
		if is {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("browser: waited in vain until %s: %s\ncomplaints: %q\n%s", what, expression, p.Complaints(),
				p.Text("body"))
		}
		<-time.After(pause)
		pause = min(2*pause, 160*time.Millisecond)
	}
}

// Text returns the text of the first element that a selector finds, as a user sees it; "" if there is none.
func (p *Page) Text(selector string) (text string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &text)
	return text
}

// Click clicks the first element that a selector finds, with the mouse, as soon as the mouse reaches it.
func (p *Page) Click(selector string) {
	p.t.Helper()
	x, y := p.reach(selector)
	p.Run(chromedp.MouseClickXY(x, y))
}

// Type types a text into the first field that a selector finds, as soon as the mouse reaches it.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.reach(selector)
	p.Eval(fmt.Sprintf("document.querySelector(%q).focus()", selector), nil)
	p.Run(chromedp.KeyEvent(text))
}

// Reach waits until the mouse reaches the first element that a selector finds, when the page is scrolled to it.
func (p *Page) Reach(selector string) {
	p.t.Helper()
	p.reach(selector)
}

// reach is Reach, and returns a point of the element.
func (p *Page) reach(selector string) (x, y float64) {
	p.t.Helper()
	point := fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e?.scrollIntoView({block: "center", behavior: "instant"});
		const box = [...(e?.getClientRects() ?? [])].find((r) => r.width && r.height);
		if (!box) return null;
		const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
		return e.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
	})()`, selector)
	p.Until(selector+" can be seen", point)
	var at []float64
	p.Eval(point, &at)
	if len(at) != 2 {
		return p.reach(selector) // it has moved meanwhile
	}
	return at[0], at[1]
}

// Keys presses keys, wherever the focus is.
func (p *Page) Keys(keys string) {
	p.t.Helper()
	p.Run(chromedp.KeyEvent(keys))
}

// Accept answers the dialog that do opens with yes or no, and returns its question.
func (p *Page) Accept(yes bool, do func()) (question string) {
	p.t.Helper()
	ctx, stop := context.WithCancel(p.ctx)
	defer stop()
	asked := make(chan string, 1)
	once := sync.OnceFunc(func() {
		_ = chromedp.Run(p.ctx, page.HandleJavaScriptDialog(yes)) // a dialog that is gone needs no answer
	})
	chromedp.ListenTarget(ctx, func(event any) {
		if e, ok := event.(*page.EventJavascriptDialogOpening); ok {
			p.Forgive("a dialog opened: " + e.Message)
			go func() { // the listener must not wait for the browser
				once()
				select {
				case asked <- e.Message:
				default: // a second dialog stays open, and ends the test
				}
			}()
		}
	})
	do()
	select {
	case question = <-asked:
	case <-time.After(patience):
		p.t.Fatalf("browser: no dialog opened\ncomplaints: %q\n%s", p.Complaints(), p.Text("body"))
	}
	return question
}

// Screenshot returns the whole page as a PNG, as wide as the window.
func (p *Page) Screenshot() (png []byte) {
	p.t.Helper()
	p.Run(chromedp.FullScreenshot(&png, 100))
	return png
}
