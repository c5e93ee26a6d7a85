package delayed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godelayed/delayed/internal/redisstore"
)

// SettingError says why a Redis server must not, or cannot, hold tasks.
type SettingError struct {
	// Name is eviction (maxmemory-policy is not noeviction), replica (the server is a replica), scripts (it runs no
	// Lua scripts for this user) or version (it is older than Redis 6.2). WorkerConfig.Allow and Redis.Check permit
	// the setting by this name.
	Name string
	// Text says which server, what was found, what was expected and what to do.
	Text string
}

// Error implements error.
func (e *SettingError) Error() string {
	return fmt.Sprintf("delayed: %s; to go on all the same, allow %q by name", e.Text, e.Name)
}

// Check asks Redis, in a cluster each of its masters, whether its settings are fit for tasks. The error joins a
// *SettingError for each setting that is not and whose name is not among the allowed ones, or says that Redis could not
// be asked. Warnings are sentences for the log: settings that were allowed, that Redis writes no append-only file, or
// what could not be found out because the user may not ask INFO or a service leaves it out.
//
// Worker.Run does the same for the servers of its queues.
func (r *Redis) Check(ctx context.Context, allow ...string) (warnings []string, err error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := errors.Join(checkContext(ctx), checkAllowed("Redis.Check", allow)); err != nil {
		return nil, err
	}
	servers, err := redisstore.Servers(ctx, r.loops, r.prefix, r.where)
	if err != nil {
		return nil, err
	}
	return checkServers(ctx, r.loops, servers, allow)
}

// checkAllowed returns an error for a name that is not among those of SettingError.
func checkAllowed(where string, allow []string) error {
	for _, name := range allow {
		if !slices.Contains(redisstore.SettingNames, name) {
			return fmt.Errorf("delayed: %s: unknown name %q of a setting: expected %s", where, name,
				strings.Join(redisstore.SettingNames, ", "))
		}
	}
	return nil
}

// checkServers is Redis.Check for the given servers.
func checkServers(
	ctx context.Context, src Source, servers []redisstore.Server, allow []string,
) (warnings []string, err error) {
	var errs []error
	for _, server := range servers {
		found, err := redisstore.Inspect(ctx, src, server)
		if err != nil {
			return nil, err
		}
		for _, unfit := range found.Unfit {
			if slices.Contains(allow, unfit.Name) {
				warnings = append(warnings, unfit.Text+" (allowed)")
			} else {
				errs = append(errs, &SettingError{Name: unfit.Name, Text: unfit.Text})
			}
		}
		warnings = append(warnings, found.Warnings...)
	}
	return warnings, errors.Join(errs...)
}
