//go:build unix

package itest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
)

// order is a task to be delayed. Zero values are options that are not given; durations are seconds.
type order struct {
	Op         string  `json:"op"`
	Function   string  `json:"function,omitempty"`
	Args       any     `json:"args,omitempty"`
	Retry      int     `json:"retry,omitempty"`
	NoRetry    bool    `json:"no_retry,omitempty"`
	Countdown  float64 `json:"countdown,omitempty"`
	Unique     float64 `json:"unique,omitempty"`
	KeepResult float64 `json:"keep_result,omitempty"`
	ID         string  `json:"id,omitempty"`
}

// outcome is the result of an order.
type outcome struct {
	ID       string `json:"id"`
	Conflict string `json:"conflict"` // the id of the task that holds the lock or id
	Value    any    `json:"value"`
	Error    string `json:"error"`
}

// producer delays tasks.
type producer interface {
	delay(t *testing.T, o order) outcome
	result(t *testing.T, id string) outcome
	cancel(t *testing.T, id string)
}

// newProducer returns the producer of a pair.
func newProducer(t *testing.T, p *pair) producer {
	t.Helper()
	if p.producer == goParty {
		q, err := delayed.OpenQueue(p.queue, sharing(handle(t, p.server), p.plain()), delayed.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return &goProducer{p, q}
	}
	return startPythonProducer(t, p)
}

// sharing returns a handle whose queues legacy workers share, if they do.
func sharing(rdb *delayed.Store, legacy bool) *delayed.Store {
	if legacy {
		return rdb.WithLegacy()
	}
	return rdb
}

// goProducer delays tasks in this process.
type goProducer struct {
	*pair
	q *delayed.Queue
}

func (p *goProducer) delay(t *testing.T, o order) outcome {
	t.Helper()
	args, err := argumentsOf(o.Args)
	if err != nil {
		t.Fatal(err)
	}
	task := delayed.NewGoTask("matrix."+o.Function, args...)
	if p.worker != goParty {
		task = delayed.NewPyTask("matrix_tasks:"+o.Function, args, nil)
	}
	var options []delayed.Option
	if o.Retry > 0 || o.NoRetry {
		options = append(options, delayed.MaxRetry(o.Retry))
	}
	if o.Countdown > 0 {
		options = append(options, delayed.In(seconds(o.Countdown)))
	}
	if o.Unique > 0 {
		options = append(options, delayed.Unique(seconds(o.Unique)))
	}
	if o.KeepResult > 0 {
		options = append(options, delayed.KeepResult(seconds(o.KeepResult)))
	}
	ref, err := p.q.With(options...).Enqueue(t.Context(), task)
	var duplicate *delayed.DuplicateError
	if errors.As(err, &duplicate) {
		return outcome{Conflict: duplicate.ID}
	}
	if err != nil {
		t.Fatal(err)
	}
	return outcome{ID: ref.ID()}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func (p *goProducer) result(t *testing.T, id string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), matrixPatience)
	defer cancel()
	value, err := delayed.Await[any](ctx, p.q.Ref(id))
	if err != nil {
		return outcome{Error: err.Error()}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	if err := json.Unmarshal(raw, &o.Value); err != nil {
		t.Fatal(err)
	}
	return o
}

func (p *goProducer) cancel(t *testing.T, id string) {
	t.Helper()
	if err := p.q.Ref(id).Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// argumentsOf makes Go values from JSON: integers, and bytes from {"bytes": "00ff"}.
func argumentsOf(args any) ([]any, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	if list, ok := args.([]any); ok && len(list) == 1 {
		if whole, ok := list[0].(json.RawMessage); ok {
			raw = whole
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var list []any
	if err := dec.Decode(&list); err != nil {
		return nil, err
	}
	for i := range list {
		if list[i], err = untag(list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func untag(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case []any:
		for i := range v {
			if v[i], err = untag(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if text, ok := v["bytes"].(string); ok {
			return hex.DecodeString(text)
		}
		for key := range v {
			if v[key], err = untag(v[key]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// pythonProducer is a Python program that executes orders.
type pythonProducer struct {
	*pair
	process *childproc.Process
	orders  io.Writer
	answers *bufio.Scanner
}

func startPythonProducer(t *testing.T, p *pair) *pythonProducer {
	t.Helper()
	cmd := pythonCommand(t, nil, "matrix_producer.py", "--url", p.server.URL(), "--queue", p.queue, "--package",
		string(p.producer),
		"--worker", string(p.worker))
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirs}
	process, err := childproc.Start(cmd)
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		orders.Close()
		answers.Close()
		process.Kill()
		if t.Failed() {
			t.Logf("producer: %s", process.Output())
		}
	})
	return &pythonProducer{p, process, orders, bufio.NewScanner(answers)}
}

func (p *pythonProducer) ask(t *testing.T, o order) outcome {
	t.Helper()
	if list, ok := o.Args.([]any); ok && len(list) == 1 {
		if whole, ok := list[0].(json.RawMessage); ok {
			o.Args = whole
		}
	}
	line, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.orders.Write(append(line, '\n')); err != nil {
		t.Fatalf("%v\n%s", err, p.process.Output())
	}
	if !p.answers.Scan() {
		t.Fatalf("no answer to %s\n%s", line, p.process.Output())
	}
	var answer outcome
	if err := json.Unmarshal(p.answers.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func (p *pythonProducer) delay(t *testing.T, o order) outcome {
	t.Helper()
	o.Op = "delay"
	answer := p.ask(t, o)
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
	return answer
}

func (p *pythonProducer) result(t *testing.T, id string) outcome {
	t.Helper()
	return p.ask(t, order{Op: "result", ID: id})
}

func (p *pythonProducer) cancel(t *testing.T, id string) {
	t.Helper()
	if answer := p.ask(t, order{Op: "cancel", ID: id}); answer.Error != "" {
		t.Fatal(answer.Error)
	}
}
