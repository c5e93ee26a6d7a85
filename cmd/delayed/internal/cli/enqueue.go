package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
)

// enqueueFlags are the options of a call.
type enqueueFlags struct {
	queue, kwargs, id, uniqueKey, conflict, group   string
	in, unique, timeout, ttl, retention, keepResult duration
	maxBackoff, debounce                            duration
	at, deadline, retryUntil                        moment
	backoff, headers                                []string
	maxRetry                                        int
	untilStart, front, unchecked, wait              bool
}

func (a *app) enqueueCommand() *cobra.Command {
	f := &enqueueFlags{}
	cmd := &cobra.Command{
		Use: "enqueue FUNCTION [ARGUMENT...]", Aliases: []string{"delay", "add"},
		Short: "Enqueue a call; arguments are JSON, checked against what workers publish",
		Long: "Enqueue a call of a function. Each argument is a JSON value: 42, true, '\"en\"', '[1,2]',\n" +
			"'{\"Name\":\"Ann\"}'. Bytes are in base64, times as 2026-01-31T15:04:05Z. FUNCTION is a path or\n" +
			"the end of one, such as mail.Welcome; workers publish the functions of each queue, see delayed\n" +
			"functions. Without --queue the call goes to the queue whose workers know the function. Python\n" +
			"functions are module:function. One that nobody has published, as legacy workers do, is taken as\n" +
			"it is, and needs --queue.",
		Example: "  delayed enqueue mail.Welcome 42 '\"en\"'\n" +
			"  delayed enqueue mail.Welcome 42 '\"en\"' --queue mail --in 1h --max-retry 5\n" +
			"  delayed enqueue sums.Add 1 2 --wait",
		Args: some, ValidArgsFunction: a.completeFunctions,
	}
	fs := cmd.Flags()
	a.queueFlag(cmd, &f.queue, "queue; without it, that whose workers know the function")
	fs.StringVar(&f.kwargs, "kwargs", "", "keyword arguments of a Python function, as a JSON object")
	fs.BoolVar(&f.unchecked, "unchecked", false, "do not check the call: FUNCTION is a whole path, --queue is needed")
	fs.BoolVar(&f.wait, "wait", false, "wait for the end of the task and print its result")
	fs.Var(&f.in, "in", "start it in so long")
	fs.Var(&f.at, "at", "start it at a time")
	fs.StringVar(&f.id, "id", "", "id of the task, in place of a random one")
	fs.Var(&f.unique, "unique", "refuse another task with the same call, or --unique-key, for so long at most")
	fs.StringVar(&f.uniqueKey, "unique-key", "", "key that --unique is about")
	fs.BoolVar(&f.untilStart, "until-start", false, "end --unique when the task starts")
	fs.StringVar(&f.conflict, "on-conflict", "", "when the id or the lock is taken: fail, skip or replace")
	fs.Var(&f.debounce, "debounce", "run a burst of such calls once, when there was none for so long")
	fs.IntVar(&f.maxRetry, "max-retry", 0, "how often it is tried again")
	fs.StringSliceVar(&f.backoff, "backoff", nil, "waits before it is tried again, such as 1m,5m,1h")
	fs.Var(&f.maxBackoff, "max-backoff", "longest wait before it is tried again")
	fs.Var(&f.retryUntil, "retry-until", "try it again until then, instead of a number of times")
	fs.Var(&f.timeout, "timeout", "how long one run may take; 0: for as long as it likes")
	fs.Var(&f.deadline, "deadline", "when it must be over")
	fs.Var(&f.ttl, "ttl", "how long it is of use before it has started")
	fs.Var(&f.retention, "retention", "keep the task for so long after it has succeeded")
	fs.Var(&f.keepResult, "keep-result", "keep its result for so long")
	fs.StringArrayVar(&f.headers, "header", nil, "header KEY=VALUE; may be repeated")
	fs.StringVar(&f.group, "group", "", "key of the group of calls that it is put together with")
	fs.BoolVar(&f.front, "front", false, "put it at the front of its queue")
	a.completeFlag(cmd, "on-conflict", fixed("fail", "skip", "replace"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.connect(); err != nil {
			return err
		}
		options, err := f.options(cmd)
		if err != nil {
			return err
		}
		return a.enqueue(cmd.Context(), f, args[0], args[1:], options)
	}
	return cmd
}

// options returns the options of the flags that were given.
func (f *enqueueFlags) options(cmd *cobra.Command) (options []delayed.Option, err error) {
	given := cmd.Flags().Changed
	span := func(name string, d duration, option func(time.Duration) delayed.TaskOption) {
		if given(name) {
			options = append(options, option(time.Duration(d)))
		}
	}
	if f.wait && !given("keep-result") && !given("retention") {
		f.keepResult = duration(10 * time.Minute)
		options = append(options, delayed.KeepResult(time.Duration(f.keepResult)))
	}
	if given("in") {
		options = append(options, delayed.In(time.Duration(f.in)))
	}
	if given("max-retry") && f.maxRetry < 0 {
		return nil, usagef("--max-retry %d: expected 0 or more", f.maxRetry)
	}
	for name, option := range map[string]delayed.Option{
		"at": delayed.At(f.at.Time), "deadline": delayed.Deadline(f.deadline.Time),
		"retry-until": delayed.RetryUntil(f.retryUntil.Time), "id": delayed.TaskID(f.id),
		"group": delayed.Group(f.group), "max-retry": delayed.MaxRetry(f.maxRetry),
		"debounce": delayed.Debounce(time.Duration(f.debounce)),
	} {
		if given(name) {
			options = append(options, option)
		}
	}
	span("timeout", f.timeout, delayed.Timeout)
	span("ttl", f.ttl, delayed.TTL)
	span("retention", f.retention, delayed.Retention)
	span("keep-result", f.keepResult, delayed.KeepResult)
	span("max-backoff", f.maxBackoff, delayed.MaxBackoff)
	switch {
	case given("unique-key") && given("unique"):
		options = append(options, delayed.UniqueKey(f.uniqueKey, time.Duration(f.unique)))
	case given("unique-key") && !given("debounce"):
		return nil, usagef("--unique-key: expected --unique too, with how long the key is held at most")
	case given("unique-key"):
		options = append(options, delayed.UniqueKey(f.uniqueKey, 7*24*time.Hour))
	case given("unique"):
		options = append(options, delayed.Unique(time.Duration(f.unique)))
	}
	if f.untilStart {
		options = append(options, delayed.UntilStart())
	}
	if f.front {
		options = append(options, delayed.Front())
	}
	return f.more(options)
}

// more adds the options of flags whose values are texts.
func (f *enqueueFlags) more(options []delayed.Option) ([]delayed.Option, error) {
	if len(f.backoff) > 0 {
		var waits []time.Duration
		for _, text := range f.backoff {
			d, err := call.ParseDuration(text)
			if err != nil {
				return nil, usagef("--backoff: %w", err)
			}
			waits = append(waits, d)
		}
		options = append(options, delayed.Backoff(waits...))
	}
	for _, h := range f.headers {
		key, value, ok := strings.Cut(h, "=")
		if !ok {
			return nil, usagef("--header %s: expected KEY=VALUE", quote(h))
		}
		options = append(options, delayed.Header(key, value))
	}
	switch f.conflict {
	case "":
	case "fail":
		options = append(options, delayed.OnConflict(delayed.Fail))
	case "skip":
		options = append(options, delayed.OnConflict(delayed.Skip))
	case "replace":
		options = append(options, delayed.OnConflict(delayed.Replace))
	default:
		return nil, usagef("--on-conflict %s: expected fail, skip or replace", quote(f.conflict))
	}
	return options, nil
}

// call finds the function of a name and returns its queue and the call.
func (a *app) call(ctx context.Context, f *enqueueFlags, name string, texts []string) (string, *delayed.Task, error) {
	if strings.Contains(name, ":") {
		return a.pythonCall(ctx, f, name, texts)
	}
	if f.kwargs != "" {
		return "", nil, usagef("--kwargs is for Python functions, module:function, and %s is one of Go", quote(name))
	}
	if f.unchecked {
		if f.queue == "" {
			return "", nil, usagef("--unchecked: expected --queue too")
		}
		args, err := call.Arguments(texts, nil)
		return f.queue, delayed.NewGoTask(name, args...), misused(err)
	}
	fn, err := a.resolve(ctx, name, f.queue)
	if err != nil {
		return "", nil, err
	}
	args, err := call.Arguments(texts, fn)
	return fn.Queue, delayed.NewGoTask(fn.Path, args...), misused(err)
}

// pythonCall is call for a Python function.
func (a *app) pythonCall(
	ctx context.Context, f *enqueueFlags, name string, texts []string,
) (string, *delayed.Task, error) {
	if f.unchecked {
		if f.queue == "" {
			return "", nil, usagef("--unchecked: expected --queue too")
		}
		task, err := call.Python(name, texts, f.kwargs)
		return f.queue, task, misused(err)
	}
	var queues []string
	if f.queue != "" {
		queues = []string{f.queue}
	}
	functions, err := a.ins.Functions(ctx, queues...)
	if err != nil {
		return "", nil, err
	}
	queue, task, err := call.PythonOn(f.queue, functions, name, texts, f.kwargs)
	if errors.Is(err, delayed.ErrArguments) {
		err = fmt.Errorf("%w; give --unchecked to enqueue it all the same", err)
	}
	return queue, task, misused(err)
}

// resolve finds the one function that a name means, on a queue or on all of them.
func (a *app) resolve(ctx context.Context, name, queue string) (*inspect.Function, error) {
	var queues []string
	if queue != "" {
		queues = []string{queue}
	}
	functions, err := a.ins.Functions(ctx, queues...)
	if err != nil {
		return nil, err
	}
	matching := call.Match(functions, name)
	where := "of any queue"
	if queue != "" {
		where = "of queue " + term.Clip(queue, 128)
	}
	if len(matching) == 0 {
		text := "no living worker " + where + " has published a function " + quote(name)
		if near := nearFunction(name, functions); near != "" {
			text += near + " Known: "
		} else {
			text += "; known: "
		}
		return nil, &codeError{exitNotFound, text + someOf(functions) + "; see delayed functions, or give the whole " +
			"path with --unchecked and --queue"}
	}
	for _, f := range matching[1:] {
		switch first := matching[0]; {
		case f.Path != first.Path:
			return nil, usagef("%s means several functions, %s and %s: write more of the path", quote(name), first.Path,
				f.Path)
		case f.Queue != first.Queue:
			return nil, usagef("workers of queues %s and %s know %s: say which with --queue", first.Queue, f.Queue,
				quote(name))
		case f.Signature() != first.Signature():
			return nil, usagef("workers of queue %s know two versions, %s and %s, as during a deploy: wait until "+
				"it is over, or give --unchecked", f.Queue, first.Signature(), f.Signature())
		}
	}
	return matching[0], nil
}

// someOf names a few functions.
func someOf(functions []inspect.Function) string {
	var names []string
	for i := range functions {
		if names = append(names, inspect.ShortName(functions[i].Path)); len(names) == 5 {
			break
		}
	}
	if len(names) == 0 {
		return "none"
	}
	if more := len(functions) - len(names); more > 0 {
		names = append(names, count(more, "other"))
	}
	return strings.Join(names, ", ")
}

// enqueuedView says which task was enqueued.
type enqueuedView document.Enqueued

func (v *enqueuedView) print(p *term.Page) {
	if v.ID == "" { // as on legacy queues
		p.Say(term.C("enqueued on "+v.Queue, term.Green))
	} else {
		p.Say(term.C(v.ID))
	}
	if !v.Ended {
		return
	}
	text := []byte("done")
	if v.Result != nil {
		text, _ = call.JSON(v.Result)
	}
	p.Say(term.C(string(text), term.Green))
}

func (a *app) enqueue(
	ctx context.Context, f *enqueueFlags, name string, texts []string, options []delayed.Option,
) error {
	queue, task, err := a.call(ctx, f, name, texts)
	if err != nil {
		return err
	}
	ref, err := a.ins.Enqueue(ctx, queue, task, options...)
	switch {
	case ref != nil && err != nil: // a script must not enqueue it once more
		a.warn(err)
	case errors.Is(err, delayed.ErrArguments), errors.Is(err, delayed.ErrFunction):
		return usageError{err}
	case err != nil:
		return unclear(err)
	}
	v := &enqueuedView{ID: ref.ID(), Queue: queue}
	if f.wait {
		result, err := delayed.Await[any](ctx, ref)
		if err != nil && !errors.Is(err, delayed.ErrNoResult) {
			return err
		}
		v.Ended, v.Result = true, call.Plain(result)
	}
	return a.print(v, true)
}
