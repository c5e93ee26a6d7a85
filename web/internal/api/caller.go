package api

import (
	"context"

	"github.com/godelayed/delayed/web/internal/auth"
)

// caller is who makes a request of the API. bearer says that it has a token with it, so it is not a browser's doing.
type caller struct {
	user   auth.User
	bearer bool
}

type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}
