package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestPaths_labels(t *testing.T) {
	const args = "paths --topology fat-tree:k=4 --from h0.0.2 --to h3.1.3 --start 0 --policy rrb --encap "
	for encap, want := range map[string][]string{
		"srv6": {"5f00:303:fe00::", "5f00:304:fe00::", "5f00:403:fe00::", "5f00:404:fe00::"},
		"mpls": {"18/18", "18/19", "19/18", "19/19"},
	} {
		out := strings.Split(mustWeft(t, strings.Fields(args+encap)...), "\n")
		for i, w := range want {
			fields := strings.Fields(out[i+1])
			if fields[1] != w || fields[2] != "h0.0.2" || strings.Count(out[i+1], w) != 1 {
				t.Errorf("%s: %q, want %s", encap, out[i+1], w)
			}
		}
		var list []step
		if err := json.Unmarshal([]byte(mustWeft(t, strings.Fields(args+encap+" --json")...)), &list); err != nil {
			t.Fatal(err)
		}
		if address := list[1].Address; !slices.Equal(list[1].Labels, []int{2, 3}) || (encap == "srv6") != (address == want[1]) || (encap == "mpls") != (address == "") {
			t.Errorf("%s: %+v", encap, list[1])
		}
	}
}

// IP-in-IP carries no labels, and is what is shown by default.
func TestPaths_noLabels(t *testing.T) {
	args := strings.Fields("paths --json --from h0.0.2 --to h3.1.3")
	out := mustWeft(t, args...)
	if strings.Contains(out, "labels") || out != mustWeft(t, append(args, "--encap", "ipip")...) {
		t.Errorf("got %s", out)
	}
	for _, encap := range []string{"srv6", "mpls"} {
		const direct = "paths --from 10.2.0.2 --to 10.2.0.3"
		if out := mustWeft(t, strings.Fields(direct+" --encap "+encap)...); out != mustWeft(t, strings.Fields(direct)...) {
			t.Errorf("%s within a rack: %s", encap, out)
		}
	}
}

func TestPaths_badEncap(t *testing.T) {
	wantError(t, "paths --from h0.0.2 --to h3.1.3 --encap gre", "--encap", "gre", "ipip, srv6, mpls")
	const large = "paths --topology leaf-spine:leaves=224,spines=2,hosts=1 --from h0.0.2 --to h0.1.2 -n 1 --encap "
	wantError(t, large+"srv6", "a0.0", "224 ports", "223")
	mustWeft(t, strings.Fields(large+"mpls")...)
}
