package main

import "fmt"

// optionsTable compares tasks that are enqueued with options.
const optionsTable = "options"

// forms are the kinds of tasks in optionsTable: each is enqueued as a former says.
var forms = []string{"scheduled", "unique", "keyed", "debounced", "grouped", "Python"}

// former is the optional method of a queue that enqueues tasks of one of the forms. i is the number of the task:
//   - scheduled: due tomorrow, each at another ms
//   - unique: of function and arguments, none of which repeats
//   - keyed: the same by a key of the caller
//   - debounced: of 1,000 keys in turn, so that most replace another task
//   - grouped: of 10 groups in turn
//   - Python: a function of Python
//
// Other tables use others:
//   - failing: its one run fails
//   - retried: fails on its first run, and is to be run again at once
//   - waiting: the same after a millisecond
//   - snoozed: is put off until tomorrow by its handler
//   - parked: the worker does not know its function
//   - lapsing: keyed, with locks of lockLife
//   - gathered: of one group, whose combined calls have 5,000 calls
type former interface {
	enqueueAs(form string, i int64, text string) error
}

// debounceKeys and groupKeys are how many keys the debounced and the grouped tasks have.
const (
	debounceKeys = 1000
	groupKeys    = 10
)

// takeForm lets producers enqueue n tasks of a form one by one, each waiting until its own is accepted.
func takeForm(form string, producers, n int) func(*bed) error {
	return func(b *bed) error {
		d, err := b.driver()
		if err != nil {
			return err
		}
		warmUp := max(10, 2*producers)
		if _, err := d.do(&request{Op: "enqueue", N: warmUp, Producers: producers, Form: form}); err != nil {
			return err
		}
		n := b.tasks(n, 500)
		a, err := d.do(&request{Op: "enqueue", N: n, Producers: producers, Form: form, First: warmUp})
		if err != nil {
			return err
		}
		b.record(optionsTable, formRow(form, producers), perSecond, false, float64(n)/a.Seconds)
		return nil
	}
}

func formRow(form string, producers int) string { return form + ", " + producersRow(producers) }

// optionScenarios measure each form with 64 and 256 producers.
func optionScenarios() (s []scenario) {
	for _, form := range forms {
		for _, producers := range []int{64, 256} {
			s = append(s, scenario{
				name: "options " + form + " " + count(producers),
				take: takeForm(form, producers, 60_000),
			})
		}
	}
	return s
}

// optionAims are the aims of the forms.
func optionAims() (all []aim) {
	for _, form := range forms {
		for _, a := range []struct {
			producers int
			least     float64
		}{{64, 4}, {256, 8}} {
			row := formRow(form, a.producers)
			all = append(all, aim{
				text:  "enqueue " + row + ": at least " + fmt.Sprint(a.least) + " times asynq",
				table: optionsTable, row: row, figure: perSecond, peer: "asynq", least: a.least,
			})
		}
	}
	return all
}
