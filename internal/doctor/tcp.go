package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// leastWindow is what a connection at 1 Gbit/s over 4 ms of queues has in flight, twice, in bytes.
const leastWindow = 1 << 20

// reno is the bit of tcp_recovery for RACK.
const rack = 1

func askTCP(f *Facts) (all []Finding, well string) {
	off := func(key, why string) {
		if f.setting(key) == 0 {
			all = append(all, wrong(slows, fmt.Sprintf("%s is 0: %s", key, why), "sysctl -w "+key+"=1"))
		}
	}
	off("net.ipv4.tcp_sack", "TCP sends much again when packets of several paths overtake each other")
	off("net.ipv4.tcp_window_scaling", "no connection has more than 64 KB in flight, which is less than several paths hold")
	if v := f.setting("net.ipv4.tcp_recovery"); v >= 0 && v&rack == 0 && (f.Config == nil || f.Config.Sprays) {
		all = append(all, wrong(slows, fmt.Sprintf("net.ipv4.tcp_recovery is %d: without RACK, TCP takes three overtaken packets for a loss", v), "sysctl -w net.ipv4.tcp_recovery=1"))
	}
	for _, key := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"} {
		words := strings.Fields(f.Settings[key])
		most := 0
		if len(words) != 3 {
			continue
		}
		if _, err := fmt.Sscan(words[2], &most); err == nil && most < leastWindow {
			all = append(all, wrong(slows, fmt.Sprintf("%s allows a connection %d bytes, less than several paths hold", key, most),
				fmt.Sprintf("sysctl -w %s=\"%s %s 6291456\"", key, words[0], words[1])))
		}
	}
	return all, "settings suit several paths"
}

func askCongestion(f *Facts) (all []Finding, well string) {
	available := strings.Fields(f.Settings["net.ipv4.tcp_available_congestion_control"])
	if f.Config == nil || f.Config.Congestion == "" || f.Config.Congestion == ownDCTCP || len(available) == 0 || slices.Contains(available, f.Config.Congestion) {
		return nil, "in the kernel"
	}
	return append(all, wrong(stops, fmt.Sprintf("congestion_control is %s, and the kernel has %s", f.Config.Congestion, strings.Join(available, ", ")),
		fmt.Sprintf("modprobe tcp_%s, or name one that there is", f.Config.Congestion))), ""
}
