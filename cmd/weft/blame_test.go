package main

import (
	"bytes"
	"testing"

	"weft/internal/daemon"
)

func TestPrintBlame(t *testing.T) {
	for _, c := range []struct {
		list []daemon.BlameStatus
		want string
	}{
		{nil, "nothing hurts: no path with traffic has lost more probes and packets than the others in the last 10 s\n"},
		{[]daemon.BlameStatus{
			{Places: []string{"a0.2-c1.1", "c1.1"}, Loss: 0.021, Lost: 412, Paths: 6, Confidence: 1,
				Hurt: []daemon.HurtStatus{{To: "h3.1.3", Lost: 203}, {To: "h2.0.2", Lost: 9}}},
			{Places: []string{"e0.0-a0.3"}, Why: "probes not answered", Confidence: 1},
			{Places: []string{"h2.1.2"}, Loss: 1, Lost: 30, Paths: 4, Confidence: 0.5},
			{Places: []string{"e0.1-a0.1"}, Why: "probes not answered", Says: []string{"h0.1.3"}, Confidence: 0.5},
			{Places: []string{"e0.1-a0.2"}, Why: "probes not answered", Held: true, Confidence: 1},
			{Places: []string{"s1"}, Family: "ipv6", Loss: 0.5, Lost: 10, Paths: 2, Confidence: 1},
			{Places: []string{"s2"}, Family: "ipv4", Why: "probes not answered", Confidence: 1},
		}, `1. a0.2-c1.1 or c1.1  loses 2.1 %: 412 packets by 6 paths in the last 10 to 20 s
   packets lost to: h3.1.3 203, h2.0.2 9
2. e0.0-a0.3  out of use: probes not answered
3. h2.1.2  loses 100 %: 30 packets by 4 paths in the last 10 to 20 s; other places explain it, too: 50 % sure
4. e0.1-a0.1  out of use to h0.1.3 by that word alone: probes not answered; other places explain it, too: 50 % sure
5. e0.1-a0.2  suspected, and in use as too few others are left: probes not answered
6. s1  loses 50 %: 10 IPv6 packets by 2 paths in the last 10 to 20 s
7. s2  for IPv4 packets out of use: probes not answered
`},
	} {
		var b bytes.Buffer
		if err := printBlame(&b, c.list); err != nil || b.String() != c.want {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), c.want)
		}
	}
}
