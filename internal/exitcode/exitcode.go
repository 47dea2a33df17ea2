// Package exitcode says with which exit status a program ends after an error. Who makes an
// error that is the user's or the system's marks it; all others are failures. The package is
// pure, and imports nothing of weft.
package exitcode

import "errors"

// The statuses. docs/exit-codes.md tells users of them.
const (
	OK     = 0
	Failed = 1 // it was tried, and failed
	Usage  = 2 // the command line, a configuration or a file that it names is wrong
	Absent = 3 // this system lacks what it takes: Linux, a privilege, a feature, a program
)

// marked is an error with a status. It reads as the error that it wraps.
type marked struct {
	error
	status int
}

func (m marked) Unwrap() error { return m.error }

// AsUsage marks an error as one of the command line or of a configuration. nil stays nil.
func AsUsage(err error) error { return mark(err, Usage) }

// AsAbsent marks an error as one of a system that lacks something. nil stays nil.
func AsAbsent(err error) error { return mark(err, Absent) }

func mark(err error, status int) error {
	if err == nil {
		return nil
	}
	return marked{err, status}
}

// Of returns the status after an error: that of its mark, of the outermost if there are several.
// What the kernel does not permit (EPERM) counts as absent only with a mark: it refuses much else
// than what a privilege is missing for, such as what a firewall drops.
func Of(err error) int {
	var m marked
	switch {
	case err == nil:
		return OK
	case errors.As(err, &m):
		return m.status
	}
	return Failed
}
