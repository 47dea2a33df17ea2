package gather

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"weft/internal/discover"
	"weft/internal/doctor"
)

// toolTime bounds how long a program is waited for.
const toolTime = 5 * time.Second

// tool runs a program in the calling thread's network namespace.
func tool(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	return exec.CommandContext(ctx, name, args...).Output()
}

// firewall reads the rules of nftables, those of iptables among them.
func (l *looker) firewall() {
	f := l.f
	if !f.System.Root {
		return
	}
	if _, err := exec.LookPath("nft"); err != nil {
		f.Unknown["firewall"] = "there is no program nft"
		return
	}
	text, err := tool("nft", "-j", "list", "ruleset")
	if err == nil {
		f.Firewall, err = doctor.ParseNFT(text)
	}
	if err != nil {
		f.Unknown["firewall"] = "nft list ruleset: " + err.Error()
	}
}

// lldp asks lldpd who is at the other ends of the cables.
func (l *looker) lldp() {
	f := l.f
	if l.Lab != nil || len(f.Cables) == 0 {
		return
	}
	if _, err := exec.LookPath("lldpcli"); err != nil {
		return
	}
	text, err := tool("lldpcli", "-f", "json", "show", "neighbors")
	if err != nil {
		f.Unknown["wiring"] = "lldpcli: " + err.Error()
		return
	}
	const self = "this-machine"
	found, err := discover.LLDP(map[string][]byte{self: text})
	if err != nil {
		f.Unknown["wiring"] = err.Error()
		return
	}
	for _, link := range found.Spec.Links {
		for i := range f.Cables {
			if c := &f.Cables[i]; link.Ends[0] == self && link.Ports[0] == c.Device {
				c.Node, _, _ = strings.Cut(link.Ends[1], ".")
			}
		}
	}
}
