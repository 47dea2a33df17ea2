package daemon

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/kernel/disturb"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// One direction of a link between switches loses two of a hundred packets.
// The daemon of a sender names the link, not others which the same connections cross, and whom
// it has hurt; nobody is blamed before.
func TestRun_blamesALossyLink(t *testing.T) {
	slowtest.System(t)
	for _, mode := range []string{ModeOffload, ModeGateway} {
		t.Run(mode, func(t *testing.T) {
			n := newNetwork(t, "b")
			a := n.start("h0.0.2", "mode: "+mode+"\npolicy: drb\n")
			var to []string
			for _, host := range []string{"h3.1.3", "h3.0.2", "h2.0.2", "h1.1.3"} {
				n.start(host, "policy: drb\n")
				p := n.connect("h0.0.2", host)
				to = append(to, host)
				go io.Copy(io.Discard, p.b)
				go func() { // 6 Mbit/s
					for b := make([]byte, 4000); ; time.Sleep(5 * time.Millisecond) {
						if _, err := p.a.Write(b); err != nil {
							return
						}
					}
				}()
			}
			a.eventually("all racks are sprayed", func(s map[string]string) bool { return !has(s, "racks.0") })
			if s := a.status(); len(blamedIn(s)) > 0 {
				t.Errorf("healthy, it blames %v", blamedIn(s))
			}
			core := n.node("c1.1")
			d := kerneltest.Disturb(t, func(f func() error) error { return n.lab.Do(core.ID, f) }, "p3", disturb.Disturbance{Loss: 50, Short: true})
			a.eventually("the link is blamed", func(s map[string]string) bool {
				b := blamedIn(s)
				return len(b) > 0 && strings.HasPrefix(b[0], "a3.2-c1.1")
			})
			s := a.status()
			if hurt := s["failures.blamed.0.hurt.0.to"]; !slices.Contains(to[:2], hurt) {
				t.Errorf("it hurts %q: %v", hurt, blamedIn(s))
			}
			if c, err := d.Counts(); err != nil || c.Lost == 0 {
				t.Errorf("lost %d packets, %v", c.Lost, err)
			}
		})
	}
}

// blamedIn lists what a status blames, with its loss.
func blamedIn(s map[string]string) (list []string) {
	for i := 0; ; i++ {
		at := fmt.Sprintf("failures.blamed.%d.", i)
		if s[at+"confidence"] == "" {
			return list
		}
		list = append(list, s[at+"places.0"]+" "+s[at+"places.1"]+" loses "+s[at+"loss"]+" "+s[at+"why"])
	}
}
