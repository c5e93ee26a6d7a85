package delayed

import "context"

var bg = context.Background()
