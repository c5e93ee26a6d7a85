package document

import (
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Diagnosis is what is wrong.
type Diagnosis struct {
	At       *time.Time         `json:"at"`       // by the clock of Redis
	Queues   int                `json:"queues"`   // that were looked at
	Workers  int                `json:"workers"`  // that are alive
	Problems []DiagnosisProblem `json:"problems"` // the worst first
}

// DiagnosisProblem is something that should be looked at.
type DiagnosisProblem struct {
	Level    string     `json:"level"`              // error or warning
	Name     string     `json:"name"`               // its kind
	Queue    string     `json:"queue"`              // "" if it is about Redis
	Others   int        `json:"others,omitempty"`   // how many other queues have the same problem
	Worker   string     `json:"worker,omitempty"`   // id of the worker that it is about
	Function string     `json:"function,omitempty"` // path of the function that it is about
	Entry    string     `json:"entry,omitempty"`    // name of the periodic entry that it is about
	Text     string     `json:"text"`
	Since    *time.Time `json:"since,omitempty"`
	Advice   string     `json:"advice"`            // what to do
	Command  string     `json:"command,omitempty"` // the command line that does so, or shows more
}

// DiagnosisOf describes a diagnosis.
func DiagnosisOf(d *inspect.Diagnosis) Diagnosis {
	return Diagnosis{
		At: Stamp(d.At), Queues: d.Queues, Workers: d.Workers,
		Problems: each(d.Problems, func(p *inspect.Problem) DiagnosisProblem {
			return DiagnosisProblem{
				Level: string(p.Severity), Name: string(p.Kind), Queue: p.Queue, Others: p.Others, Worker: p.Worker,
				Function: p.Function, Entry: p.Entry, Text: p.Text, Since: Stamp(p.Since), Advice: p.Advice,
				Command: p.Command,
			}
		}),
	}
}
