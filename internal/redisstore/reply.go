package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// values converts a reply of n values.
func values(reply any, err error, n int) ([]any, error) {
	list, err := redis.Values(reply, err)
	if err == nil && len(list) != n {
		return nil, fmt.Errorf("%w: %d values, expected %d", ErrReply, len(list), n)
	}
	return list, err
}

// ints converts a reply of n integers.
func ints(reply any, err error, n int) ([]int64, error) {
	list, err := values(reply, err, n)
	if err != nil {
		return nil, err
	}
	return redis.Int64s(list, nil)
}

// clock converts the reply to TIME.
func clock(reply any, err error) (time.Time, error) {
	parts, err := ints(reply, err, 2)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}

// outcomes converts a reply that has a number for each of n tasks.
func outcomes(reply any, err error, n int) ([]int, error) {
	list, err := values(reply, err, n)
	if err != nil {
		return nil, err
	}
	return redis.Ints(list, nil)
}

// answers converts a reply of n ones and zeros.
func answers(reply any, err error, n int) ([]bool, error) {
	list, err := values(reply, err, n)
	if err != nil {
		return nil, err
	}
	stood := make([]bool, n)
	for i, v := range list {
		stood[i] = v == int64(1)
	}
	return stood, nil
}

// answersAgain converts a reply of n ones, zeros, or twos, which mean that the claim remains.
func answersAgain(reply any, err error, n int) (stood, again []bool, _ error) {
	stood, err = answers(reply, err, n)
	if err != nil {
		return nil, nil, err
	}
	list, _ := redis.Values(reply, nil)
	for i, v := range list {
		if v == int64(2) {
			if again == nil {
				again = make([]bool, n)
			}
			again[i] = true
		}
	}
	return stood, again, nil
}

// Stored is a value that Redis holds. If it is too large, it is not read: only its size is known.
type Stored struct {
	Bytes []byte // nil: there is none, or it is too large
	Size  int    // 0 unless it is too large
}

// Exists reports whether there is a value.
func (v Stored) Exists() bool { return v.Bytes != nil || v.Size > 0 }

// storedOf converts a script's reply for a value.
func storedOf(reply any) (Stored, error) {
	switch v := reply.(type) {
	case nil:
		return Stored{}, nil
	case []byte:
		return Stored{Bytes: v}, nil
	case int64:
		return Stored{Size: int(v)}, nil
	}
	return Stored{}, fmt.Errorf("%w: %T as a value", ErrReply, reply)
}

func storedAll(reply any, err error) ([]Stored, error) {
	values, err := redis.Values(reply, err)
	if err != nil {
		return nil, err
	}
	all := make([]Stored, len(values))
	for i, v := range values {
		if all[i], err = storedOf(v); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ListedTask is a task as lists show it.
type ListedTask struct {
	ID      string // that it is filed under; "" if it is in no set
	Message Stored
	Info    []byte
	At      time.Time // when it is due or deleted; zero if it is in no set
	Score   string    // the same, as Redis writes it
}

// listedOf converts a reply of members of a sorted set of times, each with its score.
func listedOf(reply any, err error) (page []ListedTask, _ error) {
	texts, err := redis.Strings(reply, err)
	if err != nil {
		return nil, err
	}
	for pair := range slices.Chunk(texts, 2) {
		if len(pair) != 2 {
			return nil, fmt.Errorf("%w: a member without a score", ErrReply)
		}
		at, err := ScoreTime(pair[1])
		if err != nil {
			return nil, err
		}
		page = append(page, ListedTask{ID: pair[0], At: at, Score: pair[1]})
	}
	return page, nil
}

// ScoreTime returns the time of a score, ms since 1970, which servers write in several ways; the zero time for "".
func ScoreTime(score string) (time.Time, error) {
	if score == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseFloat(score, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: score: %w", ErrReply, err)
	}
	return time.UnixMilli(int64(ms)), nil
}

func idsOf(page []ListedTask) []string {
	ids := make([]string, len(page))
	for i := range page {
		ids[i] = page[i].ID
	}
	return ids
}
