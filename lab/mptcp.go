package lab

import (
	"fmt"
	"strings"
)

const (
	// MPTCPSubflows is how many subflows a connection has in papers (DRB §5, CONGA §5).
	MPTCPSubflows = 8
	// MaxMPTCPSubflows is the limit of Linux's own path manager: the first, and MPTCP_PM_ADDR_MAX
	// further ones. More are refused as an invalid argument.
	MaxMPTCPSubflows = 9
	// MaxManagedSubflows is that of weft's path manager (DRB F8).
	MaxManagedSubflows = 32
)

// SubflowCounts are what weft's path managers have done at all hosts (Lab.EnableMPTCP).
type SubflowCounts struct {
	Connections int64 // established ones that hosts have opened
	Opened      int64 // further subflows
	// Connections that have fewer than all, by cause. Ended have ended, or fell back to TCP: the
	// kernel says EINVAL or ENOTCONN, which it may also say of requests that it does not
	// understand. Refused are those of which it says something else.
	Ended, Refused int64
	// Lost is how often messages about connections were lost: they did not fit the buffer, or
	// could not be read. The connections have one subflow each.
	Lost int64
}

// Add returns the sum of two counts.
func (c SubflowCounts) Add(o SubflowCounts) SubflowCounts {
	return SubflowCounts{c.Connections + o.Connections, c.Opened + o.Opened, c.Ended + o.Ended, c.Refused + o.Refused, c.Lost + o.Lost}
}

// Since returns what has been counted since an earlier reading.
func (c SubflowCounts) Since(o SubflowCounts) SubflowCounts {
	return c.Add(SubflowCounts{-o.Connections, -o.Opened, -o.Ended, -o.Refused, -o.Lost})
}

// Lacking says why connections have fewer subflows than they were to have, other than that they
// ended first; "": they have all.
func (c SubflowCounts) Lacking() string {
	var why []string
	if c.Lost > 0 {
		why = append(why, fmt.Sprintf("messages about new connections of MPTCP were lost %d times, and these have one subflow", c.Lost))
	}
	if c.Refused > 0 {
		why = append(why, fmt.Sprintf("the kernel refused further subflows of %d connections of MPTCP", c.Refused))
	}
	if c.Connections > 0 && c.Opened == 0 && c.Refused == 0 {
		why = append(why, fmt.Sprintf("none of %d connections of MPTCP got a further subflow: they ended first, or the kernel does not understand the request", c.Connections))
	}
	return strings.Join(why, "; ")
}
