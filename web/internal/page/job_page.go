package page

import (
	"html/template"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/site"
)

// jobView is a job as pages show it.
type jobView struct {
	*site.Job

	Now   site.JobStatus
	Words []site.FilterWord // what its tasks have in common
	Took  time.Duration
	Left  time.Duration // until it has scanned all tasks, at its present pace; 0 if that is unknown
	list  taskList
}

const shownFailures = 20

// viewOf returns a job as it is now, without what is hidden.
func viewOf(j *site.Job, hidden bool) jobView {
	v := jobView{Job: j, Now: j.Now(), Words: site.FilterWords(&j.Filter, hidden)}
	v.list = taskList{j.Queue, j.State, j.Filter}
	if hidden { // the filter may have arguments in it, and an error may quote what is wrong with the arguments
		v.list.Filter = inspect.Filter{}
		v.Now.Failed, v.Now.FailedMore = nil, v.Now.Failures()
	}
	ends := v.Now.Ended
	if ends.IsZero() {
		ends = time.Now()
	}
	v.Took = ends.Sub(j.Started)
	if todo := v.Now.Total - v.Now.Scanned; v.Now.Ended.IsZero() && todo > 0 && v.Now.Scanned > 0 {
		v.Left = time.Duration(float64(v.Took) / float64(v.Now.Scanned) * float64(todo)).Round(time.Second)
	}
	return v
}

// Percent is how much of the list was scanned.
func (v *jobView) Percent() int {
	switch {
	case v.Now.Phase() == "done":
		return 100
	case v.Now.Total == 0:
		return 0
	}
	return min(100*v.Now.Scanned/v.Now.Total, 100)
}

// Shown are the first failures.
func (v *jobView) Shown() []inspect.Failure {
	return v.Now.Failed[:min(len(v.Now.Failed), shownFailures)]
}

// More is the number of failures that are not shown.
func (v *jobView) More() int { return v.Now.Failures() - len(v.Shown()) }

// List is the address of the tasks that it is done to.
func (v *jobView) List() template.URL {
	return template.URL("tasks?" + v.list.address().Encode()) //nolint:gosec // encoded
}

// Name is what the job does.
func (v *jobView) Name() string {
	which := "all "
	if !v.Filter.IsZero() {
		which = "some "
	}
	return v.What + ": " + which + v.State.String() + " tasks of " + inspect.Printable(v.Queue)
}

type jobPage struct {
	rights
	*jobView
}

func showJob(s *shared, q *site.Request) (*page, error) {
	j := s.Jobs.Get(q.Args.Get("id"))
	if j == nil {
		return nil, site.Missing(site.UnknownJob)
	}
	v := viewOf(j, s.Hidden(q.User))
	return &page{
		Title: v.Name(), Template: "job", Data: jobPage{s.rights(q), &v}, Still: !v.Now.Ended.IsZero(),
	}, nil
}

type jobsPage struct {
	rights

	Jobs []*jobView
}

func showJobs(s *shared, q *site.Request) (*page, error) {
	data := jobsPage{rights: s.rights(q)}
	for _, j := range s.Jobs.Recent() {
		v := viewOf(j, data.Hidden)
		data.Jobs = append(data.Jobs, &v)
	}
	return &page{Title: "Jobs", Template: "jobs", Data: data}, nil
}

// startJob begins a job of the user of a request, and leads to its page.
func (s *shared) startJob(q *site.Request, o site.Order) (outcome, error) {
	o.By = q.User.Name
	j, err := s.Jobs.Start(s.Ctx, q.Ins, o)
	if err != nil {
		return outcome{}, err
	}
	return outcome{To: string(link("job", "id", j.ID))}, nil
}

func cancelJob(s *shared, q *site.Request) (outcome, error) {
	j := s.Jobs.Get(q.Args.Get("id"))
	switch {
	case j == nil:
		return outcome{}, site.Missing(site.UnknownJob)
	case !j.Cancel(q.User.Name):
		return outcome{Text: "The job had ended already.", Bad: true}, nil
	}
	return outcome{Text: "The job ends after the tasks that it is at. What was done stays done."}, nil
}
