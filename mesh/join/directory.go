package join

import (
	"context"
	"errors"

	"weft/mesh"
)

// Directory is where members register and find each other. Its methods are safe for
// concurrent use.
type Directory interface {
	// Put registers a member, or replaces its registration, and returns the registration's
	// Revision. The directory keeps it until Close, and for some time after the host has
	// gone without one. ErrTaken says that another host has the name; ErrReadOnly, that
	// others say who is in the directory. A directory that has been restored from a backup since
	// Watch has told of it fails, and ends Watch: no host takes a step of its key by Revisions of two
	// histories.
	Put(ctx context.Context, m mesh.Member) (revision int64, err error)
	// Watch calls told with all members, and then with what changes, until the context or
	// what it depends on ends. It returns why. It is then called again.
	Watch(ctx context.Context, told func(Update)) error
	// Close takes the registration back.
	Close() error
}

// Update is news of a directory.
type Update struct {
	All bool // who is not in Put is no member any more
	// Restored says, with All, that the directory's Revisions begin anew, below those that it
	// has told of: it has been restored from a backup.
	Restored bool
	Put      []mesh.Member // in the order of their Revisions
	Gone     []string      // after Put
}

// ErrEnded is why Watch ends if the registration has ended, or is about to.
var ErrEnded = errors.New("the registration has ended, as the directory was not reached in time")

// Errors of Put.
var (
	ErrTaken    = errors.New("another host is registered by this name: give each its own, or wait until its registration ends")
	ErrReadOnly = errors.New("the directory is read-only")
)
