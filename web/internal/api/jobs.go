package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

// jobBody is an action on all tasks of a list that a filter matches.
type jobBody struct {
	Action string    `json:"action"` // run, archive, cancel, delete, reschedule or move
	Queue  string    `json:"queue"`
	State  string    `json:"state"`
	Filter jobFilter `json:"filter,omitzero"` // without it all tasks of the list
	how
}

// jobFilter is the conditions on tasks, as they are in addresses of lists. All that are given must hold.
type jobFilter struct {
	Function string   `json:"function,omitempty"` // its path or the end of it
	Prefix   string   `json:"prefix,omitempty"`   // the beginning of the id
	Text     string   `json:"text,omitempty"`     // a part of the call as code
	Arg      string   `json:"arg,omitempty"`      // such as 0=42 or to=ann@example.com
	Error    string   `json:"error,omitempty"`    // a part of the text of the last error
	Reason   string   `json:"reason,omitempty"`
	Header   []string `json:"header,omitempty"` // such as tenant=acme, or a key alone
	Worker   string   `json:"worker,omitempty"`
	Group    string   `json:"group,omitempty"`
	Older    string   `json:"older,omitempty"`   // enqueued at least so long ago, such as 2h
	Younger  string   `json:"younger,omitempty"` // enqueued at most so long ago
	Min      int      `json:"min,omitempty"`     // attempts
	Max      int      `json:"max,omitempty"`
	Deaths   int      `json:"deaths,omitempty"` // workers that have died with it, at least
}

// jobsAnswer is the jobs that this dashboard remembers, the latest first.
type jobsAnswer struct {
	Jobs []jobAnswer `json:"jobs"`
}

// oneJobAnswer is one job.
type oneJobAnswer struct {
	Job jobAnswer `json:"job"`
}

// jobAnswer is an action on all tasks of a list that a filter matches, which goes on after the request that has
// started it.
type jobAnswer struct {
	ID      string          `json:"id"`
	Action  string          `json:"action"` // as pages call it
	Queue   string          `json:"queue"`
	State   string          `json:"state"`
	Filter  string          `json:"filter,omitempty"` // in words
	By      string          `json:"by"`               // the user
	Phase   string          `json:"phase"`            // running, stopping, done, canceled or broken off
	Started *time.Time      `json:"started"`
	Ended   *time.Time      `json:"ended"`           // null while it runs
	Total   int             `json:"total"`           // tasks in the list when it began
	Stop    string          `json:"stop,omitempty"`  // who has stopped it
	Error   string          `json:"error,omitempty"` // why it has stopped early
	Report  document.Report `json:"report"`
}

// jobOf describes a job, without what is hidden.
func jobOf(j *site.Job, hidden bool) jobAnswer {
	now, filter := j.Now(), &j.Filter
	if hidden { // an error may quote what is wrong with the arguments
		now.FailedMore, now.Failed, filter = now.Failures(), nil, veiled(filter)
	}
	v := jobAnswer{
		ID: j.ID, Action: j.What, Queue: j.Queue, State: j.State.String(), Filter: call.FilterText(filter),
		By: j.By, Phase: now.Phase(), Started: document.Stamp(j.Started), Ended: document.Stamp(now.Ended),
		Total: now.Total, Stop: now.Stop, Report: document.ReportOf(j.Queue, j.State.String(), &now.Report),
	}
	if now.Err != nil {
		v.Error = document.ErrorText(now.Err.Error())
	}
	return v
}

func apiJobs(c *apiCall) (jobsAnswer, error) {
	v := jobsAnswer{Jobs: []jobAnswer{}}
	for _, j := range c.site.Jobs.Recent() {
		v.Jobs = append(v.Jobs, jobOf(j, c.hidden()))
	}
	return v, nil
}

func apiJob(c *apiCall) (oneJobAnswer, error) {
	j, err := c.job()
	if err != nil {
		return oneJobAnswer{}, err
	}
	return oneJobAnswer{jobOf(j, c.hidden())}, nil
}

// job returns the job that the path names.
func (c *apiCall) job() (*site.Job, error) {
	j := c.site.Jobs.Get(c.in("job"))
	if j == nil {
		return nil, site.Missing(site.UnknownJob)
	}
	return j, nil
}

func apiStartJob(c *apiCall, n *jobBody) (v oneJobAnswer, err error) {
	if err := c.site.CheckName(n.Queue); err != nil {
		return v, err
	}
	verb, err := verbNamed(n.Action)
	if err != nil {
		return v, err
	}
	o := site.Order{Queue: n.Queue, What: verb.Label, By: c.User.Name}
	if o.Action, err = n.action(c, verb, n.Queue); err != nil {
		return v, err
	}
	var ok bool
	o.State, ok = site.StateNamed(n.State)
	if ok = ok && (verb.Fits(o.State) || n.Action == "run" && o.State == state.Archived); !ok {
		return v, site.Bad(fmt.Sprintf("state: expected one whose tasks one can %s, such as %v, found %s", n.Action,
			verb.States[0], strconv.Quote(call.Clip(n.State, 60))))
	}
	values, err := textsOf(&n.Filter)
	if err != nil {
		return v, err
	}
	if o.Filter, err = site.ParseFilter(values, c.hidden()); err != nil {
		return v, err
	}
	if _, err := c.Ins.Queue(c.Ctx, n.Queue); err != nil {
		return v, err
	}
	j, err := c.site.Jobs.Start(c.site.Ctx, c.Ins, o)
	if err != nil {
		return v, err
	}
	c.location = c.up() + "jobs/" + url.PathEscape(j.ID)
	return oneJobAnswer{jobOf(j, false)}, nil
}

func apiCancelJob(c *apiCall) (v oneJobAnswer, err error) {
	j, err := c.job()
	if err != nil {
		return v, err
	}
	if !j.Cancel(c.User.Name) {
		return v, site.Fail(http.StatusConflict, "the job has ended already")
	}
	return oneJobAnswer{jobOf(j, false)}, nil
}
