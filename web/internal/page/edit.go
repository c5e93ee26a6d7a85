package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

// editPage is the form for other arguments of a task.
type editPage struct {
	rights
	taskRow

	Form  *callForm // nil: they cannot be changed here
	Why   string    // they cannot
	Was   string    // a digest of the arguments as they were when the form was made
	Error string
}

// Runs reports whether the task can be run now besides.
func (p *editPage) Runs() bool { return p.State != state.Pending }

func showEdit(s *shared, q *site.Request) (*page, error) {
	p, err := editOf(s, q, q.Args.Get("id"))
	if err != nil {
		return nil, err
	}
	return p.page(), nil
}

func (p *editPage) page() *page {
	return &page{
		Title: "Edit " + inspect.ShortName(inspect.Printable(p.Function)), Template: "edit", Data: p, Still: true,
	}
}

// editOf returns the form of a task with its arguments.
func editOf(s *shared, q *site.Request, id string) (*editPage, error) {
	queue := q.Args.Get("queue")
	if queue == "" || id == "" {
		return nil, site.Bad("expected the queue and the id of a task")
	}
	ctx, stop := context.WithTimeout(q.Ctx, findTime)
	defer stop()
	t, err := q.Ins.Task(ctx, queue, id)
	if err != nil {
		return nil, err
	}
	p := &editPage{rights: s.rights(q), taskRow: taskRow{t, packID(t.ID), s.Hidden(q.User)}}
	if !canEdit(&t) {
		p.Why = fmt.Sprintf("The task is %v. Tasks can be edited while they wait, and once they are archived, if "+
			"their message can be read.", t.State)
		return p, nil
	}
	if s.Config.Redact != nil || p.Secret {
		if whole, err := s.showsAll(ctx, &t); err != nil || !whole {
			p.Why = "This dashboard does not show the arguments as they are, so it cannot give them back."
			return p, err
		}
	}
	fn, unknown, err := s.published(q, &t)
	if err != nil {
		return nil, err
	}
	if unknown != nil && !t.Python {
		p.Why = "The types of its arguments are unknown: " + unknown.Error() + "."
		return p, nil
	}
	if err := p.fill(fn); err != nil {
		p.Form, p.Why = nil, err.Error()
	}
	return p, nil
}

// showsAll reports whether the arguments of a task are as Redis has them, with nothing redacted.
func (s *shared) showsAll(ctx context.Context, t *inspect.Task) (bool, error) {
	plain, err := inspect.New(s.Redis, inspect.Config{})
	if err != nil {
		return false, err
	}
	as, err := plain.Task(ctx, t.Queue, t.ID)
	return reflect.DeepEqual(as.Args, t.Args) && reflect.DeepEqual(as.Kwargs, t.Kwargs), err
}

// fill makes the form, with the arguments of the task in it.
func (p *editPage) fill(fn *inspect.Function) error {
	text, err := call.Write(&p.Task, fn)
	if err != nil {
		return err
	}
	kwargs := ""
	if len(p.Kwargs) > 0 {
		named := inspect.Task{Python: true}
		named.Args = []any{p.Kwargs}
		if kwargs, err = call.Write(&named, nil); err != nil {
			return err
		}
		kwargs = strings.TrimSpace(kwargs)
		kwargs = strings.TrimSpace(kwargs[1 : len(kwargs)-1])
	}
	sum := sha256.Sum256([]byte(text + "\n" + kwargs))
	p.Was = hex.EncodeToString(sum[:8])
	texts, err := call.Split(text)
	if err != nil {
		return err
	}
	if fn != nil && p.Python && len(texts) > len(fn.Parameters) && !fn.Variadic {
		fn = nil // it takes fewer: the form must show them all
	}
	p.Form = newCallForm(p.Function, fn, nil)
	p.Form.Options = nil
	if p.Form.Kwargs != nil {
		p.Form.Kwargs.Value = kwargs
	}
	if fn == nil {
		p.Form.Args[0].Value = text
		return nil
	}
	for i, field := range p.Form.Args {
		switch variadic := fn.Variadic && i == len(p.Form.Args)-1; {
		case variadic && len(texts) > i:
			field.Value = "[" + strings.Join(texts[i:], ", ") + "]"
		case len(texts) > i:
			field.Value = texts[i]
		}
	}
	return nil
}

// editTask gives a task the arguments that were typed, and runs it then if the form says so. It shows the form again
// with what is wrong.
func editTask(s *shared, q *site.Request) (outcome, error) {
	ids, err := unpackIDs(q.Args["id"])
	if err != nil || len(ids) != 1 {
		return outcome{}, site.Bad("the form does not say which task it is about")
	}
	p, err := editOf(s, q, ids[0])
	if err != nil {
		return outcome{}, err
	}
	if p.Form == nil {
		return outcome{}, site.Bad(p.Why)
	}
	p.Form.fill(q.Args)
	if q.Args.Get("was") != p.Was {
		p.Error = "Somebody has changed its arguments meanwhile. If you save now, yours replace them."
		return outcome{Form: p.page()}, nil
	}
	task, _, err := p.Form.read()
	if errors.Is(err, errTyped) {
		return outcome{Form: p.page()}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	if err := p.do(q, inspect.Edit(task)); err != nil {
		p.Error = err.Error()
		return outcome{Form: p.page()}, nil //nolint:nilerr // the form shows it
	}
	out := outcome{To: string(link("task", "queue", p.Queue, "id", p.ID)), Text: "The task has other arguments now."}
	if q.Args.Get("do") != "run" || !p.Runs() {
		return out, nil
	}
	out.Text = "The task has other arguments now, and is pending."
	if err := p.do(q, inspect.RunNow()); err != nil {
		out.Text, out.Bad = "The task has other arguments now, but it cannot be run: "+err.Error(), true
	}
	return out, nil
}

// do applies an action to the task.
func (p *editPage) do(q *site.Request, a inspect.Action) error {
	r, err := q.Ins.Do(q.Ctx, p.Queue, a, p.ID)
	switch {
	case err != nil:
		return err
	case r.Done == 0 && r.Err() == nil:
		return errors.New("nothing was changed: the task has left its state meanwhile")
	}
	return r.Err()
}
