package testbed

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// setting is a sysctl of a network namespace.
type setting struct {
	key, value string
	optional   bool // not in every kernel
}

// sprayedTCP are settings for a kernel's TCP whose packets overtake each other
// and are not put back in order.
var sprayedTCP = []setting{
	// Loss detection waits for packets that may have been overtaken, at first for a
	// quarter of the least round trip (RFC 8985 §6.2 step 4). By default that is the
	// least of five minutes: the handshake's, which met no queue. Paths that differ by
	// the queueing time of a few packets then look like losses, and nine of ten
	// retransmissions are needless. With a window of 0 the least is the latest. The
	// setting matters at senders.
	{key: "net/ipv4/tcp_min_rtt_wlen", value: "0"},
	// Or TCP would take long round trips for those of a distant host, to which it sends short
	// super-segments. Linux 5.18.
	{key: "net/ipv4/tcp_tso_rtt_log", value: "16", optional: true},
	// An overtaken packet is acknowledged at once, so up to every packet is, rather
	// than every second one. Without timestamps packets and acknowledgements are 12
	// bytes shorter. Embedded stacks have no timestamps either.
	{key: "net/ipv4/tcp_timestamps", value: "0"},
}

// apply sets it in the network namespace of the calling thread and returns what
// was there before.
func (s setting) apply() (former setting, err error) {
	path := "/proc/sys/" + s.key
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(s.value), 0)
	}
	if err != nil {
		return s, fmt.Errorf("sysctl: %w; it needs Linux 4.14 and a writable /proc/sys", err)
	}
	return setting{s.key, strings.TrimSpace(string(b)), s.optional}, nil
}

// applyAll stops at the first error. What it returns is to be applied in turn
// to undo it.
func applyAll(all []setting) (former []setting, err error) {
	for _, s := range all {
		f, err := s.apply()
		if s.optional && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return former, err
		}
		former = append(former, f)
	}
	return former, nil
}

func restoreAll(former []setting) error {
	var errs []error
	for _, s := range former {
		_, err := s.apply()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
