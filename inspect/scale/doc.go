// Package scale tells autoscalers such as KEDA how many workers are wanted, over HTTP and in JSON:
//
//	mux.Handle("GET /scale", scale.Handler(ins, scale.Config{Queues: []string{"mail"}}))
//
// A program of package workermain adds it by Config.Serve to the server of -listen. It answers for all processes, so
// one program suffices; a small one that runs no tasks can also answer while there is no worker.
package scale
