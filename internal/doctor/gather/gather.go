// Package gather collects what package doctor examines: from the kernel of the calling thread's
// network namespace, from the daemon's status, its configuration and its files. It changes
// nothing.
package gather

import (
	"context"
	"errors"
	"time"
)

// ErrNothing says that neither a daemon runs here nor a configuration of one exists.
var ErrNothing = errors.New("doctor: no weft host and no weft switch runs here, and there is no configuration of one: nothing to check; --config names a file")

// Options say where to look. The zero value looks at a machine whose daemon may run.
type Options struct {
	HostConfig, SwitchConfig string // files; one that does not exist is none
	Socket                   string // of the daemon; "" is that of this network namespace
	Offline                  bool   // the daemon is not asked
	// Between is the time between two statuses that are compared.
	Between time.Duration
	// Lab is what a lab knows of a node; nil for a machine.
	Lab *Lab
}

// Lab is what a lab knows of one of its nodes.
type Lab struct {
	Host  bool
	Plan  *Plan
	Ports []Port
}

// Plan is a switch's.
type Plan struct {
	Node     string
	Settings [][2]string // sysctls and their values
	Bouncing bool
	Routes   []Route
}

// Route is a destination that is to have a route, and the ports that it is to lead to.
type Route struct {
	Prefix string
	Ports  []string
}

// Port is how a lab has built a port.
type Port struct {
	Name, Peer string
	Host       bool // the peer is one
	MTU        int
	RateMbit   float64
}

// askTime bounds how long a daemon is waited for: one that is stopped never answers.
const askTime = 3 * time.Second

// sleep reports whether the time passed before ctx was done.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
