// Package deploy has no code of its own: its tests check the files for systemd and Kubernetes beside it. It is a
// module, so that nothing else links the types of Kubernetes.
package deploy
