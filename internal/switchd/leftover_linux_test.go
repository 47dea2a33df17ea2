package switchd

import (
	"os"
	"regexp"
	"strconv"
	"syscall"

	"weft/lab"
)

// Test labs are named td, the process's number and a letter, so that runs at the
// same time do not meet and what a killed run left can be told.
var labName = regexp.MustCompile(`^weft-(td([0-9]+)[a-z])-`)

// clearLeftovers takes down the labs of processes that have died.
func clearLeftovers() {
	entries, _ := os.ReadDir("/run/netns")
	for _, e := range entries {
		m := labName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[2]); err == nil && syscall.Kill(pid, 0) != nil {
			lab.Down(m[1])
		}
	}
}
