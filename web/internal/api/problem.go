package api

// problemAnswer says what is wrong with a request, or why it cannot be answered; see RFC 9457.
type problemAnswer struct {
	Title  string `json:"title"`  // what HTTP calls it
	Status int    `json:"status"` // of the answer
	Detail string `json:"detail"` // what was expected, what was found, and what to do
}
