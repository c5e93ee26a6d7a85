package web

// route is an address: a page, something to do, or both.
type route struct {
	role Role                                 // that looking needs
	show func(*site, *request) (*page, error) // nil: there is nothing to see
	act  map[string]deed                      // by the value of field "do"
}

// routes are the pages, by the last part of their address.
var routes = map[string]route{
	"":          {role: Viewer, show: showOverview},
	"job":       {role: Viewer, show: showJob, act: map[string]deed{"cancel": {Operator, cancelJob}}},
	"jobs":      {role: Viewer, show: showJobs},
	"queue":     {role: Viewer, show: showQueue, act: queueDeeds},
	"periodic":  {role: Viewer, show: showPeriodic, act: ordersOfEntries},
	"entry":     {role: Viewer, show: showEntry, act: ordersOfEntries},
	"groups":    {role: Viewer, show: showGroups, act: map[string]deed{"fire": {Operator, fireGroup}}},
	"parked":    {role: Viewer, show: showParked},
	"deaths":    {role: Viewer, show: showDeaths},
	"audit":     {role: Viewer, show: showAudit},
	"enqueue":   {role: Admin, show: showEnqueue, act: map[string]deed{"enqueue": {Admin, enqueueCall}}},
	"functions": {role: Viewer, show: showFunctions},
	"function":  {role: Viewer, show: showFunction},
	"workers":   {role: Viewer, show: showWorkers, act: ordersOfWorkers},
	"worker":    {role: Viewer, show: showWorker, act: ordersOfWorkers},
	"search":    {role: Viewer, show: showSearch},
	"edit": {
		role: Admin, show: showEdit, act: map[string]deed{"save": {Admin, editTask}, "run": {Admin, editTask}},
	},
	"task": {role: Viewer, show: showTask, act: verbDeeds(map[string]deed{}, "", doTask)},
	"tasks": {
		role: Viewer, show: showTasks,
		act: verbDeeds(verbDeeds(map[string]deed{}, "", doSome), "all-", doAll),
	},
}
