//go:build unix

package dashboard_test

import (
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/itest/dashboard/browser"
)

// TestKeys uses the keyboard: rows, sections, search, the list of keys.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	s.fill()
	p := browser.Open(t)
	p.Go(s.url + "tasks?queue=mail&state=scheduled")
	p.Until("the page is live", live)
	at := `[...document.querySelectorAll("tbody tr")].findIndex((r) => r.classList.contains("at"))`
	p.Keys("jj")
	p.Until("the second row is marked", at+" === 1")
	p.Keys("k")
	p.Until("the first row is marked", at+" === 0")
	p.Keys("x")
	p.Until("it is selected", `document.querySelector("[data-count]").textContent === "1"`)
	p.Keys("\r")
	p.Until("its page opens", live+` && location.pathname.endsWith("/task")`)
	p.Keys("?")
	p.Until("the keys are shown", `document.querySelector("#keys").open`)
	p.Keys("\x1b")
	p.Until("the keys are gone", `!document.querySelector("#keys").open`)
	p.Keys("gd")
	p.Until("the deaths are there", live+` && location.pathname.endsWith("/deaths")`)
	p.Keys("/")
	p.Until("the search has the focus", `document.activeElement.name === "q"`)
	p.Keys("nightly\r")
	p.Until("the search has an answer", live+` && location.pathname.endsWith("/search")`)
}

// TestSearch finds a task by its id beside 100,000 others, a function and a queue by parts of their names.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	s.fillCrowd()
	q := delayed.NewQueue(queueName, s.rdb)
	_, err := q.With(delayed.TaskID("order 66")).Enqueue(t.Context(), delayed.NewGoTask("mail.Welcome", 66, "en"))
	s.Must(err)
	s.work(delayed.WorkerConfig{}, functions()[2])
	p := browser.Open(t)
	find := func(text, shown string) {
		t.Helper()
		main := `document.querySelector("main").innerText.includes`
		found, late := main+"(`"+shown+"`)", main+"(`took more than 5 s`)"
		for again := true; again; { // a search ends after 5 s, which is not enough on a busy machine
			p.Go(s.url)
			p.Type(".search input", text)
			p.Keys("\r")
			p.Until(text+" is found", live+" && ("+found+" || "+late+")")
			p.Eval("!"+found, &again)
		}
	}
	find("order 66", `mail.Welcome(66, "en")`)
	find("later 03", `mail.Welcome(3, "de")`)
	s.Until("the worker has published its function", func() bool { return len(s.published()) == 1 })
	find("igest", "mail.Digest(string, ...int)")
	find("back", crowd)
	find("nowhere", "Nothing found")
}

// TestColours switches to dark colours, which stay for other pages.
func TestColours(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	p := browser.Open(t)
	p.Dark(false)
	p.Go(s.url)
	colour := `getComputedStyle(document.body).backgroundColor`
	var light, dark, kept string
	p.Eval(colour, &light)
	p.Click(".theme")
	p.Until("the colours change", colour+" !== "+"`"+light+"`")
	p.Eval(colour, &dark)
	p.Go(s.url + "workers")
	p.Eval(colour, &kept)
	if kept != dark {
		t.Errorf("the next page is %s, expected %s", kept, dark)
	}
}

// TestMenuOfPhones opens the navigation of narrow screens.
func TestMenuOfPhones(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	p := browser.Open(t)
	p.Size(390, 800)
	p.Go(s.url)
	p.Click(".menu")
	p.Click(`nav a[href="workers"]`)
	p.Until("the workers are there", live+` && location.pathname.endsWith("/workers")`)
}

// TestHiddenPage shows what has changed once it is seen again.
func TestHiddenPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	q := delayed.NewQueue(queueName, s.rdb)
	add := func() {
		_, err := q.Enqueue(t.Context(), delayed.NewGoTask("mail.Welcome", 1, "en"))
		s.Must(err)
	}
	add()
	p := browser.Open(t)
	p.Go(s.url + "tasks?queue=mail&state=pending")
	p.Until("the page is live", live)
	// A page knows by this whether it is seen. Its events are closed before the script ends.
	see := func(hidden string) {
		p.Eval(`Object.defineProperty(document, "hidden", {configurable: true, get: () => `+hidden+`});
			document.dispatchEvent(new Event("visibilitychange"))`, nil)
	}
	lines := `document.querySelector(".list-line").textContent`
	p.Eval(`new MutationObserver(() => window.changes = (window.changes ?? 0) + 1)
		.observe(document.querySelector(".list-line"), {subtree: true, characterData: true, childList: true})`, nil)
	see("true")
	add()
	other := browser.Open(t) // it gets what the first page would have got
	other.Go(s.url + "tasks?queue=mail&state=pending")
	other.Until("another page shows both", lines+`.includes("2 pending")`)
	var changes int
	p.Eval("window.changes ?? 0", &changes)
	if changes > 0 {
		t.Error("a hidden page was made anew")
	}
	see("false")
	p.Until("the page shows both", lines+`.includes("2 pending")`)
}
