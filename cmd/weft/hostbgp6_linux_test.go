package main

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// IPv6 goes as IPv4 does where the switches tell of IPv6, too: over all spines, round a link
// that fails, and plain while the spines do not take its outer headers off.
func TestHost_carriesIPv6(t *testing.T) {
	slowtest.Unraced(t) // TestHost_gatewayCarriesBothFamilies has both families with the race detector
	l := newBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1", "offload", "drb", map[string]string{"h1-1": "leaf1", "h2-1": "leaf2"})
	l.carryBoth("h1-1", "h2-1")
	by := l.send6("h1-1", "h2-1")
	if a, b := by["spine1"], by["spine2"]; min(a, b) < 1000 || max(a, b) > min(a, b)*3/2 {
		t.Errorf("packets bounced at %v, want as many at both spines", by)
	}
	mustWeft(t, "lab", "fail", "--name", l.name, "spine1-leaf2")
	l.waitFor("h1-1 quits the link", func() bool {
		by = l.send6("h1-1", "h2-1")
		return by["spine1"] < 100
	})
	mustWeft(t, "lab", "heal", "--name", l.name)
	l.waitFor("h1-1 takes it back", func() bool {
		by = l.send6("h1-1", "h2-1")
		return by["spine1"] > 1000
	})
	// A firewall that drops IPv6 in IPv6 takes IPv6 alone off the carrier.
	l.in("leaf1", "nft 'table ip6 filter { chain forward { type filter hook forward priority 0; ip6 nexthdr 41 drop; }; }'")
	l.waitFor("IPv6 goes plain", func() bool { return l.status("h1-1", "racks.0.plain") == "true" })
	if by = l.send6("h1-1", "h2-1"); by["spine1"]+by["spine2"] > 600 { // acknowledgements go the other way
		t.Errorf("behind a firewall packets bounced at %v", by)
	}
	if by = l.send("h1-1", "h2-1"); min(by["spine1"], by["spine2"]) < 400 {
		t.Errorf("behind a firewall for IPv6, packets of IPv4 bounced at %v", by)
	}
	l.in("leaf1", "nft delete table ip6 filter")
	l.waitFor("IPv6 is carried again", func() bool {
		by = l.send6("h1-1", "h2-1")
		return min(by["spine1"], by["spine2"]) > 1000
	})
}

// IPv6 goes in flowcells over all spines, and the peer's dataplane restores their order. While
// the peer hangs, its kernel gets the packets.
func TestHost_restoresTheOrderOfIPv6(t *testing.T) {
	slowtest.Unraced(t)
	modes := map[string]string{"gateway": "gateway"}
	if slowtest.Long() { // the same parts in another order
		modes["offload"] = "offload\nresequence: true\nreceivers_resequence: true"
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) { restoresTheOrderOfIPv6(t, mode) })
	}
}

func restoresTheOrderOfIPv6(t *testing.T, mode string) {
	l := newBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1", mode, "presto", map[string]string{"h1-1": "leaf1", "h2-1": "leaf2"})
	hosts := []string{"h1-1", "h2-1"}
	l.carryBoth(hosts...)
	// A loose reverse path filter, as firewalld has it, lets in what comes by the TUN.
	l.in("h2-1", "nft 'table ip6 loose { chain raw { type filter hook prerouting priority raw; icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept; fib saddr . mark oif missing drop; }; }'")
	count := func(key string) int {
		t.Helper()
		n, err := strconv.Atoi(l.status("h2-1", key))
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return n
	}
	spread := func(by map[string]uint64) bool { // acknowledgements keep to one path
		a, b := by["spine1"], by["spine2"]
		return min(a, b) > 400 && max(a, b) < 4*min(a, b)
	}
	const took, inOrder, numbered = "steer.taken", "dataplane.resequencer.in_order", "dataplane.resequencer.flows_numbered"
	before := map[string]int{took: count(took), inOrder: count(inOrder), numbered: count(numbered)}
	if by := l.send6("h1-1", "h2-1"); !spread(by) {
		t.Errorf("packets bounced at %v, want many at both spines", by)
	}
	// 5 MB are some 3,600 packets, and fewer super-segments.
	for key, least := range map[string]int{took: 2000, inOrder: 50, numbered: 1} {
		if n := count(key) - before[key]; n < least {
			t.Errorf("%s of the peer grew by %d, want %d or more", key, n, least)
		}
	}
	pid, dead := count("process"), count("steer.passed_dead")
	ended := make(chan error, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		err := syscall.Kill(pid, syscall.SIGSTOP)
		time.Sleep(2 * time.Second)
		ended <- errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
	}()
	l.send6("h1-1", "h2-1")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := count("steer.passed_dead") - dead; n < 100 {
		t.Errorf("the kernel got %d packets while the peer hung", n)
	}
	l.waitFor("IPv6 is carried again", func() bool { return spread(l.send6("h1-1", "h2-1")) })
	for _, host := range hosts {
		if says := l.says(host); strings.Contains(says, "repaired:") {
			t.Errorf("%s says\n%s", host, says)
		}
	}
	// A strict filter drops what comes by the TUN: then the kernel gets IPv6 as it comes.
	l.in("h2-1", "nft 'flush chain ip6 loose raw; add rule ip6 loose raw icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept; add rule ip6 loose raw fib saddr . mark . iif oif missing drop'")
	l.waitFor("h2-1 notices", func() bool {
		return strings.Contains(l.says("h2-1"), "nobody restores the order of IPv6") && strings.Contains(l.says("h2-1"), "back at work")
	})
	took2 := count(took)
	l.send6("h1-1", "h2-1")
	if n := count(took) - took2; n > 100 { // of BGP
		t.Errorf("behind a strict filter %d packets went to the dataplane", n)
	}
	if by := l.send("h1-1", "h2-1"); !spread(by) {
		t.Errorf("behind a strict filter packets of IPv4 bounced at %v", by)
	}
	l.in("h2-1", "nft delete table ip6 loose")
	l.waitFor("h2-1 notices that it is loose", func() bool {
		return strings.Contains(l.says("h2-1"), "because IPv6 packets that come in by the TUN arrive again")
	})
	l.waitFor("the order of IPv6 is restored again", func() bool {
		before := count(took)
		return spread(l.send6("h1-1", "h2-1")) && count(took)-before > 2000
	})
}
