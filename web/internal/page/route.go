package page

import (
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// route is an address: a page, something to do, or both.
type route struct {
	Role auth.Role                                   // that looking needs
	Show func(*shared, *site.Request) (*page, error) // nil: there is nothing to see
	Act  map[string]deed                             // by the value of field "do"
}

// Routes are the pages, by the last part of their address.
var Routes = map[string]route{
	"":          {Role: auth.Viewer, Show: showOverview},
	"job":       {Role: auth.Viewer, Show: showJob, Act: map[string]deed{"cancel": {auth.Operator, cancelJob}}},
	"jobs":      {Role: auth.Viewer, Show: showJobs},
	"queue":     {Role: auth.Viewer, Show: showQueue, Act: queueDeeds},
	"periodic":  {Role: auth.Viewer, Show: showPeriodic, Act: ordersOfEntries},
	"entry":     {Role: auth.Viewer, Show: showEntry, Act: ordersOfEntries},
	"groups":    {Role: auth.Viewer, Show: showGroups, Act: map[string]deed{"fire": {auth.Operator, fireGroup}}},
	"parked":    {Role: auth.Viewer, Show: showParked},
	"deaths":    {Role: auth.Viewer, Show: showDeaths},
	"audit":     {Role: auth.Viewer, Show: showAudit},
	"enqueue":   {Role: auth.Admin, Show: showEnqueue, Act: map[string]deed{"enqueue": {auth.Admin, enqueueCall}}},
	"functions": {Role: auth.Viewer, Show: showFunctions},
	"function":  {Role: auth.Viewer, Show: showFunction},
	"workers":   {Role: auth.Viewer, Show: showWorkers, Act: ordersOfWorkers},
	"worker":    {Role: auth.Viewer, Show: showWorker, Act: ordersOfWorkers},
	"search":    {Role: auth.Viewer, Show: showSearch},
	"edit": {
		Role: auth.Admin, Show: showEdit,
		Act: map[string]deed{"save": {auth.Admin, editTask}, "run": {auth.Admin, editTask}},
	},
	"task": {Role: auth.Viewer, Show: showTask, Act: verbDeeds(map[string]deed{}, "", doTask)},
	"tasks": {
		Role: auth.Viewer, Show: showTasks,
		Act: verbDeeds(verbDeeds(map[string]deed{}, "", doSome), "all-", doAll),
	},
}
