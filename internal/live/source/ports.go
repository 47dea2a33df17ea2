package source

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// devicesFile is of the calling thread's network namespace, which /sys need not be.
const devicesFile = "/proc/thread-self/net/dev"

// Ports returns what the devices of the calling thread's network namespace have counted, by their
// names.
func Ports() (map[string]PortCount, error) {
	text, err := os.ReadFile(devicesFile)
	if err != nil {
		return nil, fmt.Errorf("counters of devices: %w", err)
	}
	return parsePorts(text)
}

// parsePorts reads the table of proc_pid_net(5): two lines of head, and for each device its name,
// a colon, eight numbers of what was received and eight of what was sent.
func parsePorts(text []byte) (map[string]PortCount, error) {
	all := make(map[string]PortCount)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, rest, ok := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 16 {
			continue
		}
		var n [16]uint64
		for i := range n {
			var err error
			if n[i], err = strconv.ParseUint(fields[i], 10, 64); err != nil {
				return nil, fmt.Errorf("counters of devices: %s: %w", name, err)
			}
		}
		all[strings.TrimSpace(name)] = PortCount{Received: n[0], ReceivedPackets: n[1], Forgotten: n[3], Sent: n[8], SentPackets: n[9], SentDrops: n[11]}
	}
	return all, lines.Err()
}
