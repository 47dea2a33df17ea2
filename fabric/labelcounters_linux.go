package fabric

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink/nl"

	"weft/internal/kernel"
)

// ReadLabelCounters returns the counters of the routes of labels in the calling
// thread's network namespace, nil if there are none.
func ReadLabelCounters() (*LabelCounters, error) {
	list, err := readSIDs()
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("list the routes of labels: %w", err))
	}
	if len(list) == 0 {
		return nil, nil
	}
	var c LabelCounters
	for _, s := range list {
		if s.action == nl.SEG6_LOCAL_ACTION_END_DX4 {
			c.Decapsulated += s.packets
			c.Malformed += s.errors
		} else {
			c.Popped += s.packets
			c.Ended += s.errors
		}
	}
	b, err := os.ReadFile("/proc/thread-self/net/snmp6")
	if err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		switch name {
		case "Ip6InNoRoutes":
			c.Unknown = n
		case "Ip6InHdrErrors":
			c.Expired = n
		}
	}
	return &c, nil
}
