package delayed_test

import "context"

var bg = context.Background()
