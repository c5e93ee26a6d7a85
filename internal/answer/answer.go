// Package answer reads errors that Redis has answered.
package answer

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// raised is what Redis 6.2 puts in front of the error that ended a script: the script's name and, once or twice, the
// line. The error of a command that Redis refused before it ran begins with a minus sign.
var raised = regexp.MustCompile(`^ERR Error running script \(call to \w+\): (?:@user_script: ?\d+: )+-?`)

// unknownCommand is what Redis answers to a command that it does not have, also in a script.
var unknownCommand = regexp.MustCompile(`[uU]nknown (Redis )?command`)

// forbidden are the beginnings of errors with which a script ends that calls a command or key that its user may not:
// up to Redis 7.0, and later.
var forbidden = []string{"The user executing the script can't ", "ACL failure in script: "}

// Code returns the code of an error that Redis has answered: the word in capitals at its beginning, such as
// READONLY, OOM or WRONGTYPE, and ERR for errors without a code of their own. If a script ended with an error, that is
// the code of the command that failed in it, on every version of Redis; NOPERM if the user may not call that command.
// Code returns "" if err is no answer of Redis.
func Code(err error) string {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return ""
	}
	text := string(answer)
	wrapper := raised.FindString(text)
	code, rest, _ := strings.Cut(text[len(wrapper):], " ")
	switch {
	case wrapper != "":
		rest = text[len(wrapper):]
	case code != "ERR":
		return codeOrERR(code)
	}
	if slices.ContainsFunc(forbidden, func(start string) bool { return strings.HasPrefix(rest, start) }) {
		return "NOPERM"
	}
	return codeOrERR(code)
}

// codeOrERR returns a word that can be a code, and ERR for any other.
func codeOrERR(word string) string {
	if len(word) < 2 || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "ERR"
	}
	return word
}

// Is reports whether an error is an answer of Redis, rather than a missing one.
func Is(err error) bool { return Code(err) != "" }

// Forbidden reports whether Redis has answered that this user may not run a command or use a key, or that it does not
// have the command. That lasts until somebody changes its configuration.
func Forbidden(err error) bool {
	var refusal redis.Error
	return errors.As(err, &refusal) && (Code(err) == "NOPERM" || unknownCommand.MatchString(string(refusal)))
}

// FromReplaced reports whether an error says that its connection leads to a server that cannot serve it any more, or
// not for long: a master that has become a replica, or a replica that loads the data of its master.
func FromReplaced(err error) bool {
	switch Code(err) {
	case "READONLY", "MASTERDOWN", "LOADING", "UNBLOCKED":
		return true
	}
	return false
}
