//go:build unix

package dashboard_test

import (
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/itest/dashboard/browser"
)

// TestKeys uses the keyboard: rows, sections, search, the list of keys; and the mouse for exact times.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	s.fill()
	p := browser.Open(t)
	p.Go(s.url + "tasks?queue=mail&state=scheduled")
	p.Until("the page is live", live)
	at := `[...document.querySelectorAll("tbody tr")].findIndex((r) => r.classList.contains("at"))`
	p.Eval(`document.querySelector("tbody time").dispatchEvent(new Event("mouseover", {bubbles: true}))`, nil)
	p.Until("the mouse over a relative time shows the exact one", `(() => {
		const time = document.querySelector("tbody time");
		return time.title.includes(new Date(time.dateTime).getFullYear()) && time.textContent.startsWith("in ");
	})()`)
	p.Keys("j")
	p.Until("the first row is marked", at+" === 0")
	p.Keys("j")
	p.Until("the second row is marked", at+" === 1")
	p.Keys("k")
	p.Until("the first row is marked again", at+" === 0")
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
			p.Until(text+" is found", live+` && location.pathname !== "/queues/" && (`+found+" || "+late+")")
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

// TestColours has the system's colours until the user chooses others, which stay for other pages, and again afterwards.
func TestColours(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	p := browser.Open(t)
	ground := func() (colour string) {
		p.Eval(`getComputedStyle(document.body).backgroundColor`, &colour)
		return colour
	}
	same := func(when, want string) {
		t.Helper()
		if got := ground(); got != want {
			t.Errorf("%s: the ground is %s, expected %s", when, got, want)
		}
	}
	choose := func(name string) {
		t.Helper()
		p.Click(".theme")
		p.Until("the button says "+name, `document.querySelector(".theme").title === "Colours: `+name+`"`)
	}
	p.Dark(false)
	p.Go(s.url)
	light := ground()
	p.Dark(true)
	dark := ground()
	if light == dark {
		t.Errorf("the ground is %s, whatever the system prefers", light)
	}
	p.Dark(false)
	choose("dark")
	same("dark by choice", dark)
	p.Go(s.url + "workers")
	same("dark by choice on another page", dark)
	choose("light")
	p.Dark(true)
	same("light by choice, on a dark system", light)
	p.Dark(false)
	choose("as the system")
	same("light by the system again", light)
	p.Go(s.url + "functions")
	p.Dark(true)
	same("dark by the system on another page", dark)
}

// TestMenuOfPhones opens the navigation of narrow screens, which is out of the way before.
func TestMenuOfPhones(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	p := browser.Open(t)
	p.Size(narrow, 800)
	p.Go(s.url)
	p.Until("the menu is closed", live+` && getComputedStyle(document.querySelector("nav")).display === "none"`)
	p.Click(".menu")
	p.Until("the menu says that it is open", `document.querySelector(".menu").ariaExpanded === "true"`)
	p.Click(`nav a[href="workers"]`)
	p.Until("the workers are there", live+` && location.pathname.endsWith("/workers")`)
}

// TestSortOnPhones sorts queues where the table has no heads, and keeps the span of the charts.
func TestSortOnPhones(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	for i, name := range []string{"few", "many"} {
		for range i + 1 {
			_, err := delayed.NewQueue(name, s.rdb).Enqueue(t.Context(), delayed.NewGoTask("mail.Welcome", 1, "en"))
			s.Must(err)
		}
	}
	p := browser.Open(t)
	p.Size(narrow, 800)
	p.Go(s.url + "?span=day")
	first := `document.querySelector(".queues tbody tr").dataset.key`
	p.Until("queues are in the order of their names", live+" && "+first+` === "few"`)
	p.Type("#sort", "p") // Pending is the first of those with that letter
	p.Until("the fullest queue is first", live+" && "+first+` === "many" && location.search.includes("span=day")`)
}

// TestFocusStays chooses an order while something else on the page comes or goes.
func TestFocusStays(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	s.Server.Do(t, "CONFIG", "SET", "appendonly", "yes") // else the page warns of that for ever
	for _, name := range []string{"few", "many"} {
		_, err := delayed.NewQueue(name, s.rdb).Enqueue(t.Context(), delayed.NewGoTask("mail.Welcome", 1, "en"))
		s.Must(err)
	}
	p := browser.Open(t)
	p.Size(narrow, 800) // wide screens have no such choice
	p.Go(s.url)
	p.Until("tasks wait in vain", live+` && document.querySelector("main ul.problems")`)
	p.Eval(`window.sort = document.querySelector("#sort"); window.sort.focus()`, nil)
	for _, key := range []string{"few", "few_noti", "many", "many_noti"} {
		s.Server.Do(t, "DEL", strings.TrimSuffix(s.Name, queueName)+key)
	}
	p.Until("all is well", `document.querySelector("main .calm")`)
	var stays bool
	p.Eval(`document.activeElement === window.sort`, &stays)
	if !stays {
		t.Error("the choice of the order has lost the focus")
	}
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
