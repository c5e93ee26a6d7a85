package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

func (v *foundView) print(p *term.Page) {
	for i := range v.Tasks {
		p.Space()
		printTask(p, &v.Tasks[i])
	}
}

func printTask(p *term.Page, t *document.Task) {
	p.Say(term.C(shownCall(t), term.Bold))
	p.Field("id", term.C(t.ID))
	p.Field("queue", term.C(t.Queue))
	p.Field("state", term.C(t.State, stateStyle(stateOf(t.State))))
	p.Field("reason", term.C(string(t.Reason)))
	p.Field("function", term.C(t.Function))
	p.Field("problem", term.C(t.Problem, term.Red))
	at := func(name string, when *time.Time) {
		if when != nil {
			p.Field(name, term.C(term.Moment(*when, p.Now)))
		}
	}
	at("enqueued", t.EnqueuedAt)
	due := "due"
	switch stateOf(t.State) {
	case state.Archived, state.Completed:
		due = "kept until"
	case state.Parked:
		due = "archived"
	default:
	}
	at(due, t.Due)
	at("claimed", t.ClaimedAt)
	at("started", t.StartedAt)
	at("began", t.BeganAt)
	at("first failed", t.FirstFailed)
	at("since", t.At)
	attempt := strconv.Itoa(t.Attempt)
	if t.Options != nil && t.Options.MaxRetry != nil {
		attempt += fmt.Sprintf(" of %d", *t.Options.MaxRetry+1)
	}
	p.Field("attempt", term.C(attempt))
	if t.Deaths > 0 {
		p.Field("deaths", term.C(term.Count(t.Deaths, "worker")+" died with it", term.Red))
	}
	p.Field("worker", term.C(t.Worker))
	if t.Options != nil {
		p.Field("options", term.C(strings.Join(optionTexts(t.Options), ", ")))
	}
	for _, key := range sorted(t.Headers) {
		p.Field("header", term.C(key+"="+t.Headers[key]))
	}
	p.Field("size", term.C(term.Bytes(int64(t.SizeBytes))))
	if g := t.Progress; g != nil {
		text := term.Number(g.Done) + " of " + term.Number(g.Total)
		if g.Note != "" {
			text += ": " + g.Note
		}
		p.Field("progress", term.C(text, term.Green))
	}
	if t.Result != nil {
		text, err := call.JSON(t.Result)
		if err == nil {
			p.Field("result", term.C(string(text), term.Green))
		}
	}
	for _, f := range t.Failures {
		text := fmt.Sprintf("attempt %d, %s, on %s: %s", f.Attempt, term.Moment(f.At, p.Now), f.Worker, f.Error)
		p.Field("failed", term.C(text, term.Red))
	}
	p.Text("error", term.C(t.Error, term.Red))
	p.Text("stack", term.C(t.Stack))
}
