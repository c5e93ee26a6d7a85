package web

// jobs are actions on whole lists of tasks, which go on after the request that has started them.
type jobs struct{}

func (j *jobs) wait() {}
