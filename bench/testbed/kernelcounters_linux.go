package testbed

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// addKernel adds what the TCP of the calling thread's namespace has counted.
func (c *Counters) addKernel() error {
	for _, k := range []struct {
		file, group, name string
		sum               *int64
	}{
		{"snmp", "Tcp:", "RetransSegs", &c.Retransmits},
		{"netstat", "TcpExt:", "TCPSynRetrans", &c.SYNRetransmits},
		{"netstat", "TcpExt:", "TCPTimeouts", &c.Timeouts},
	} {
		text, err := os.ReadFile("/proc/thread-self/net/" + k.file)
		if err != nil {
			return err
		}
		n, err := counterOf(string(text), k.group, k.name)
		if err != nil {
			return fmt.Errorf("/proc/net/%s: %w", k.file, err)
		}
		*k.sum += n
	}
	return nil
}

// counterOf finds a counter in a file that has two lines for each group: names, and values.
func counterOf(text, group, name string) (int64, error) {
	at := -1
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != group:
		case at < 0:
			if at = slices.Index(fields, name); at < 0 {
				return 0, fmt.Errorf("no counter %s %s", group, name)
			}
		case at < len(fields):
			return strconv.ParseInt(fields[at], 10, 64)
		}
	}
	return 0, fmt.Errorf("no value of %s %s", group, name)
}
