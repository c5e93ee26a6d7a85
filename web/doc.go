// Package web is a dashboard for queues: an http.Handler that a program mounts where it likes, and that the command
// `delayed web` serves by itself.
//
//	dashboard, err := web.New(rdb, web.Config{Authorize: func(r *http.Request) (web.User, error) {
//		return web.User{Name: nameOf(r), Role: web.Operator}, nil
//	}})
//	mux.Handle("/queues/", http.StripPrefix("/queues", dashboard))
//
// It reads and acts through package inspect alone, so everything that users do is in the audit log with their names.
// Pages are made on the server, link to each other by relative addresses and load nothing from other hosts. They stay
// up to date by server-sent events, and by asking again where these do not get through.
//
// The same handler answers programs under api/v1; api/v1/openapi.json describes that.
package web
