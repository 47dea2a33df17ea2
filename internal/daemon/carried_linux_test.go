package daemon

import (
	"os"
	"strings"
	"testing"

	"weft/internal/config"
	"weft/policy"
)

// The guide's table of what is carried is what configurations do.
func TestGuide_whatIsCarried(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| mode | policies | IPv4 | IPv6 |\n|---|---|---|---|\n")
	if !ok {
		t.Fatal("there is no such table")
	}
	fabric, six := leafSpine(t, 3, 4), leafSpineTo(t, "2001:db8::2", 3, 4)
	rows := make(map[string]int) // of each mode and policy
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			break
		}
		mode, more, _ := strings.Cut(strings.NewReplacer("`", "").Replace(strings.TrimSpace(cells[0])), ", ")
		for _, name := range strings.Split(strings.TrimSpace(cells[1]), ", ") {
			rows[mode+" "+name]++
			c := defaults()
			c.Mode, c.Policy, c.views = mode, name, views{fabric, six}
			if more == "receivers_resequence: false" {
				c.ReceiversResequence = config.No
			}
			by := [2]string{"program", "program"}
			switch {
			case c.checkPolicy() != nil:
				by = [2]string{"refused", "refused"}
			case c.diverts():
				by = [2]string{"dataplane", "dataplane"}
			}
			if c.checkPolicy() == nil && c.six() == nil {
				by[1] = "plain"
			}
			if got := [2]string{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}; got != by {
				t.Errorf("%s: the guide says %v, it is %v", cells[0]+name, got, by)
			}
		}
	}
	for _, mode := range []string{ModeGateway, ModeOffload} {
		for _, name := range policy.Names() {
			if rows[mode+" "+name] == 0 {
				t.Errorf("the guide does not say what mode %s does under %s", mode, name)
			}
			delete(rows, mode+" "+name)
		}
	}
	if len(rows) > 0 {
		t.Errorf("the guide has besides: %v", rows)
	}
}
