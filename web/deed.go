package web

// deed is something that a user can do by a form.
type deed struct {
	role Role
	do   func(*site, *request) (outcome, error)
}

// outcome is where the browser goes after a deed, and what it shows there.
type outcome struct {
	To   string // an address of this site; "" for where the form says
	Text string
	Bad  bool  // it went wrong, in part at least
	Form *page // in place of all that: the form once more, with what was typed and what is wrong with it
}
