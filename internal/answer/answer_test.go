package answer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// TestCode reads errors as servers of several versions write them.
func TestCode(t *testing.T) {
	const call = "ERR Error running script (call to f_17fce80281c3f94639514d661c73216a51a765cc): "
	for text, want := range map[string]string{
		// Commands.
		"READONLY You can't write against a read only replica.":                                        "READONLY",
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": "UNBLOCKED",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":             "MASTERDOWN",
		"NOPERM User u has no permissions to run the 'set' command":                                    "NOPERM",
		"NOSCRIPT No matching script. Please use EVAL.":                                                "NOSCRIPT",
		"MOVED 3999 127.0.0.1:6381":                                                                    "MOVED",
		"BUSYGROUP Consumer Group name already exists":                                                 "BUSYGROUP",
		"ERR max number of clients reached":                                                            "ERR",
		"ERR unknown command `EVAL`, with args beginning with: `-READONLY x`, ":                        "ERR",
		"LOADING":                            "LOADING",
		"unknown command":                    "ERR", // as some proxies answer
		"Error running script: -READONLY no": "ERR",
		// Scripts, Redis 7.0 and later, and Valkey.
		"OOM command not allowed when used memory > 'maxmemory'. script: 219c, on @user_script:14.": "OOM",
		"WRONGTYPE Operation against a key script: on @user_script:1.":                              "WRONGTYPE",
		"NOREPLICAS Not enough good replicas. script: 219c, on @user_script:1.":                     "NOREPLICAS",
		"ERR user_script:1: OOM x script: 219c, on @user_script:1.":                                 "ERR",
		"ERR The user executing the script can't run this command script: 219c, on @user_script:1.": "NOPERM",
		"ERR ACL failure in script: User u has no permissions script: on @user_script:1.":           "NOPERM",
		"ERR Error compiling script (new function): user_script:1: near '@user_script:1: -OOM '":    "ERR",
		// Scripts, Redis 6.2.
		call + "@user_script:1: WRONGTYPE Operation against a key":                             "WRONGTYPE",
		call + "@user_script:1: @user_script: 1: -OOM command not allowed.":                    "OOM",
		call + "@user_script:14: @user_script: 14: -MISCONF Redis is configured. ":             "MISCONF",
		call + "@user_script:1: @user_script: 1: -READONLY You can't write.":                   "READONLY",
		call + "@user_script:1: @user_script: 1: -NOREPLICAS Not enough replicas.":             "NOREPLICAS",
		call + "@user_script:1: @user_script: 1: Unknown Redis command called from Lua script": "ERR",
		call + "@user_script:1: user_script:1: OOM x":                                          "ERR",
		call + "@user_script:1: ERR no such key":                                               "ERR",
		call + "@user_script:1: user_script:1: '@user_script: 1: -READONLY no'":                "ERR",
		call + "@user_script:1: @user_script: 1: The user executing the script can't run it":   "NOPERM",
		call + "@user_script:7: @user_script: 7: Script attempted to access a non local key":   "ERR",
	} {
		for _, err := range []error{redis.Error(text), fmt.Errorf("delayed: ack: %w", redis.Error(text))} {
			if got := Code(err); got != want {
				t.Errorf("%q: expected %q, found %q", err, want, got)
			}
		}
	}
	for _, err := range []error{nil, errors.New("READONLY EOF"), fmt.Errorf("OOM: %w", errors.New("EOF"))} {
		if got := Code(err); got != "" {
			t.Errorf("%v, which is no answer of Redis: expected no code, found %q", err, got)
		}
	}
}
