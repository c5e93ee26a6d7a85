package delayedtest_test

import (
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

// TestQueueThatWaits opens a queue as a program does that has replicas. There are none here.
func TestQueueThatWaits(t *testing.T) {
	q, err := delayed.OpenQueue("mail", delayedtest.NewRedis(t), delayed.QueueConfig{WaitReplicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Enqueue(t.Context(), delayed.NewGoTask("example.com/app/mail.Welcome")); err != nil {
		t.Errorf("Enqueue: %v", err)
	}
}
