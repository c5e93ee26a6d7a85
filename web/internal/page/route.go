package page

import (
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// route is an address: a page, something to do, or both.
type route struct {
	Role auth.Role                                   // that looking needs
	Show func(*shared, *site.Request) (*page, error) // nil: there is nothing to see
	Act  formActions                                 // by the value of field "do"
}

var (
	queueActions = commands(site.QueueCommands, "name", formActions{
		"weight": {auth.Operator, weighQueue}, "empty": {auth.Admin, emptyQueue}, "delete": {auth.Admin, deleteQueue},
	})
	workerActions = commands(site.WorkerCommands, "id", formActions{})
	entryActions  = commands(site.EntryCommands, "name", formActions{"run": {auth.Operator, runEntry}})
)

// Routes are the pages, by the last part of their address.
var Routes = map[string]route{
	"":          {Role: auth.Viewer, Show: showOverview},
	"job":       {Role: auth.Viewer, Show: showJob, Act: formActions{"cancel": {auth.Operator, cancelJob}}},
	"jobs":      {Role: auth.Viewer, Show: showJobs},
	"queue":     {Role: auth.Viewer, Show: showQueue, Act: queueActions},
	"periodic":  {Role: auth.Viewer, Show: showPeriodic, Act: entryActions},
	"entry":     {Role: auth.Viewer, Show: showEntry, Act: entryActions},
	"groups":    {Role: auth.Viewer, Show: showGroups, Act: formActions{"fire": {auth.Operator, fireGroup}}},
	"parked":    {Role: auth.Viewer, Show: showParked},
	"deaths":    {Role: auth.Viewer, Show: showDeaths},
	"audit":     {Role: auth.Viewer, Show: showAudit},
	"enqueue":   {Role: auth.Admin, Show: showEnqueue, Act: formActions{"enqueue": {auth.Admin, enqueueCall}}},
	"functions": {Role: auth.Viewer, Show: showFunctions},
	"function":  {Role: auth.Viewer, Show: showFunction},
	"workers":   {Role: auth.Viewer, Show: showWorkers, Act: workerActions},
	"worker":    {Role: auth.Viewer, Show: showWorker, Act: workerActions},
	"search":    {Role: auth.Viewer, Show: showSearch},
	"edit": {
		Role: auth.Admin, Show: showEdit,
		Act: formActions{"save": {auth.Admin, editTask}, "run": {auth.Admin, editTask}},
	},
	"task": {Role: auth.Viewer, Show: showTask, Act: verbActions(formActions{}, "", doTask)},
	"tasks": {
		Role: auth.Viewer, Show: showTasks,
		Act: verbActions(verbActions(formActions{}, "", doSome), "all-", doAll),
	},
}
