package metrics

import (
	"fmt"
	"strings"
	"testing"
)

// What is blamed is exported with its names. Of however many, few have series, the worst, and
// all are counted.
func TestWriter_blame(t *testing.T) {
	write := func(all ...Blamed) string {
		return text(t, Collector(func(w Writer) { w.Blame(all) }))
	}
	if out := write(); !strings.Contains(out, "\nweft_blamed_places{kind=\"link\"} 0\n") || strings.Contains(out, "loss_ratio") {
		t.Errorf("of none it says\n%s", out)
	}
	link := func(loss float64, names ...string) Blamed {
		b := Blamed{Places: names, Loss: loss}
		for range names {
			b.Kinds = append(b.Kinds, "link")
		}
		return b
	}
	six := link(0, "a-b")
	six.Family = "ipv6"
	out := write(link(0.25, "a-b"), six, link(0.1, "a-b"), link(0.02, "c-d", "d-e", "e-f", "f-g", "g-h"), Blamed{Places: []string{"s1"}, Kinds: []string{"switch"}}, Blamed{})
	for _, want := range []string{
		`weft_blamed_loss_ratio{family="",kind="link",place="a-b"} 0.25`, `weft_blamed_loss_ratio{family="ipv6",kind="link",place="a-b"} 0`,
		`weft_blamed_loss_ratio{family="",kind="link",place="c-d or d-e or e-f or 2 more"} 0.02`, `weft_blamed_loss_ratio{family="",kind="switch",place="s1"} 0`,
		`weft_blamed_places{kind="link"} 4`, `weft_blamed_places{kind="switch"} 1`, `weft_blamed_places{kind="host"} 0`,
	} {
		if !strings.Contains(out, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	var many []Blamed
	for i := range 1000 {
		many = append(many, link(1-float64(i)/1000, fmt.Sprint("l", i)))
	}
	out = write(many...)
	if n := strings.Count(out, "\nweft_blamed_loss_ratio{"); n != MaxBlamed || !strings.Contains(out, `place="l15"`) || !strings.Contains(out, "\nweft_blamed_places{kind=\"link\"} 1000\n") {
		t.Errorf("%d series of 1000 places, want %d, those of the worst", n, MaxBlamed)
	}
}
