package delayed

import "github.com/godelayed/delayed/internal/wire"

// keeps says whether a message says that something is kept of its task.
func keeps(x *wire.Extra) bool { return x != nil && (x.KeepResult > 0 || x.Retention > 0) }
