package lookout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weft/internal/eventlog"
	"weft/liveness"
	"weft/topology"
)

// A link is told of once when the first of several carriers avoids it, and once when the last one
// uses it, with the carrier.
func TestPathLog_aChangeOnce(t *testing.T) {
	top, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=2")
	if err != nil {
		t.Fatal(err)
	}
	link, err := top.LinkByName("e0.1-a0.1")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	p := NewPathLog(eventlog.New(slog.New(slog.NewJSONHandler(&b, nil)), nil))
	journals := map[string]*Journal{}
	for _, by := range []string{"ipip", "srv6", "six"} {
		journals[by] = p.Journal(by)
	}
	dead, held, none := liveness.Suspect{Link: link.ID, Path: -1, Why: "w"}, liveness.Suspect{Link: link.ID, Path: -1, Why: "h", Held: true}, liveness.Suspect{}
	host := top.Node(3)
	one := liveness.Suspect{Link: link.ID, Path: 1, Dst: host.Addr, Why: "p"}
	for i, step := range []struct {
		by   string
		says liveness.Suspect
		want string
	}{
		{"ipip", dead, "path_down link avoided ipip w"},
		{"srv6", dead, ""},
		{"ipip", dead, ""},
		{"six", held, ""},
		{"ipip", none, ""},
		{"srv6", none, "path_down link suspected, but too few others are left six h"},
		{"srv6", dead, "path_down link avoided srv6 w"},
		{"six", none, ""},
		{"srv6", none, "path_up link used again srv6 "},
		{"six", one, "path_down path avoided six p " + host.Name},
		{"ipip", one, ""},
		{"six", none, ""},
		{"ipip", none, "path_up path used again ipip  " + host.Name},
		{"six", none, ""},
	} {
		var all []liveness.Suspect
		if step.says.Why != "" {
			all = append(all, step.says)
		}
		b.Reset()
		journals[step.by].Found(top, all, nil)
		if got := brief(t, b.String()); got != step.want {
			t.Errorf("step %d: it says %q, want %q", i, got, step.want)
		}
	}
	// One that ends says no more that a link is bad.
	journals["ipip"].Found(top, []liveness.Suspect{dead}, nil)
	journals["ipip"].ended()
	b.Reset()
	journals["six"].Found(top, []liveness.Suspect{dead}, nil)
	if got := brief(t, b.String()); got != "path_down link avoided six w" {
		t.Errorf("it says %q", got)
	}
}

// brief is what an event says: name, message, carrier, why and host.
func brief(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	e := decoded(t, text)
	s := fmt.Sprint(e["event"], " ", e["msg"], " ", e["carrier"], " ", orNothing(e["why"]))
	if e["to"] != nil {
		s += fmt.Sprint(" ", e["to"])
	}
	return s
}

func orNothing(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func decoded(t *testing.T, line string) (e map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatalf("%v: not one event: %s", err, line)
	}
	return e
}

// Whatever carriers say in whatever order, of each link the last event says how it is: avoided or
// suspected as long as one says so, used again else; and no event says what the one before said.
func TestPathLog_lastEventIsTrue(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var b bytes.Buffer
		now := time.Duration(0)
		p := NewPathLog(eventlog.New(slog.New(slog.NewJSONHandler(&b, nil)), func() time.Duration { now += time.Second; return now }))
		says := map[string]map[int]bool{} // held, by carrier and link
		state := map[string]string{}
		for range 200 {
			by := []string{"a", "b", "c"}[r.IntN(3)]
			var all []liveness.Suspect
			says[by] = map[int]bool{}
			for _, l := range r.Perm(8)[:r.IntN(5)] {
				says[by][l] = r.IntN(3) == 0
				all = append(all, liveness.Suspect{Link: topology.LinkID(l), Path: -1, Why: by, Held: says[by][l]})
			}
			b.Reset()
			p.Journal(by).Found(top, all, nil)
			for line := range strings.Lines(b.String()) {
				e := decoded(t, line)
				if link := e["link"].(string); state[link] == e["msg"] {
					t.Fatalf("seed %d: said twice: %s", seed, line)
				} else {
					state[link] = e["msg"].(string)
				}
			}
			for l := range 8 {
				want := "link used again"
				for _, links := range says {
					if held, said := links[l]; said && !held {
						want = "link avoided"
						break
					} else if said {
						want = "link suspected, but too few others are left"
					}
				}
				if got := state[top.LinkName(topology.LinkID(l))]; got != want && (got != "" || want != "link used again") {
					t.Fatalf("seed %d: link %d: %q, want %q", seed, l, got, want)
				}
			}
		}
	}
}

// Of many changes at once few are named, and the rest is counted.
func TestPathLog_manyAtOnce(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	j := NewPathLog(eventlog.New(slog.New(slog.NewJSONHandler(&b, nil)), nil)).Journal("ipip")
	var all []liveness.Suspect
	for l := range maxLogged + 5 {
		all = append(all, liveness.Suspect{Link: topology.LinkID(l), Path: -1, Why: "w"})
	}
	for _, suspects := range [][]liveness.Suspect{all, nil} {
		b.Reset()
		j.Found(top, suspects, nil)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if last := decoded(t, lines[len(lines)-1]); len(lines) != maxLogged+1 || last["count"] != 5.0 || last["carrier"] != "ipip" {
			t.Errorf("%d lines, the last is %v", len(lines), last)
		}
	}
}
