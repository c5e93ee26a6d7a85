package delayed_test

import (
	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/rediscluster"
)

func init() { delayed.DialCluster = rediscluster.Dial }
