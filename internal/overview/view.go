// Package overview says on one screen how a daemon does: a verdict, what is wrong and what to
// do about it, and the paths and racks or ports, the worst first. Host and Switch are the parts
// of the daemons' JSON that it reads, so it also reads what an older or newer daemon says.
//
// All of it is pure. View functions make a View of one status, or of two for what happens in
// between; View.Text makes lines of it.
package overview

import "time"

// View is what is told of a daemon.
type View struct {
	Who     string // host or switch, and which
	Verdict string // one of the Verdict constants
	Why     string
	About   string // how it is configured
	// Forwards is what a host forwards, and for whom; "" for nothing.
	Forwards string
	// Problems come in the order of their weight.
	Problems []Problem
	Tables   []Table
}

// The verdicts. VerdictSprayed is a host's, VerdictWell a switch's.
const (
	VerdictSprayed  = "sprayed"  // packets take their paths, and nothing is wrong
	VerdictWell     = "well"     // nothing is wrong
	VerdictDegraded = "degraded" // it works, and something is wrong
	VerdictPlain    = "plain"    // packets go as the kernel's own routes have them
	VerdictEnded    = "ended"    // the agent does nothing any more
)

// Problem is something that is not as it should be.
type Problem struct {
	What string
	Do   string // "" if nothing can be done
	Note bool   // it is worth knowing, and the verdict does not heed it
}

// Table has one line for each path, rack or port, the worst first.
type Table struct {
	Head []string
	Rows []Row
	Of   string // what a row is, in the plural
	// Hidden counts further rows that the status does not have.
	Hidden int
}

// Row is a line of a Table.
type Row struct {
	Cells []string
	Bad   bool
}

// since is a time between two states of a daemon, and whether one can compare them.
func since(elapsed time.Duration, process, before int) bool {
	return elapsed > 0 && process == before
}

// faults counts the problems that the verdict heeds.
func faults(all []Problem) (n int, first string) {
	for _, p := range all {
		if !p.Note {
			if n == 0 {
				first = p.What
			}
			n++
		}
	}
	return n, first
}
