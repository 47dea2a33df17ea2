package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	var out atMost
	cmd.Stdout = &out
	err := cmd.Run()
	if out.more {
		return nil, fmt.Errorf("%s says more than %d MB", name, mostSaid>>20)
	}
	return out.buf.Bytes(), err
}

// mostSaid bounds what a program says, in bytes.
const mostSaid = 16 << 20

// atMost keeps what is written, and refuses more than mostSaid. The buffer is not embedded, or its
// ReadFrom would be taken, which knows no bound.
type atMost struct {
	buf  bytes.Buffer
	more bool
}

func (b *atMost) Write(p []byte) (int, error) {
	if b.more = b.more || b.buf.Len()+len(p) > mostSaid; b.more {
		return 0, errTooMuch
	}
	return b.buf.Write(p)
}

var errTooMuch = errors.New("too much")

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
	// By numbers, for names differ between machines; without what is in sets, which may be much.
	text, err := tool("nft", "-n", "-t", "-j", "list", "ruleset")
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
