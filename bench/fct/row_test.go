package fct

import (
	"strings"
	"testing"
)

func TestRows_whoBalances(t *testing.T) {
	want := map[string]Where{"kernel-ecmp": Kernel, "kernel-mptcp": Kernel, "kernel-drb": Host, "host-auto": Host, "gateway-presto": Host, "drb": Host, "ecmp": Host}
	for _, r := range Rows() {
		if w, ok := want[r.Name]; ok && w != r.Where {
			t.Errorf("%s: %s", r.Name, r.Where)
		}
		if (r.Where == Switch) != (r.Balance != "") {
			t.Errorf("%+v", r)
		}
		delete(want, r.Name)
	}
	if len(want) > 0 {
		t.Errorf("no rows %v", want)
	}
	if r := switchRow("drill"); r.Name != "switch-drill" || r.Where != Switch || r.Balance != "drill" || r.Hosts.Name != "kernel-ecmp" {
		t.Errorf("%+v", r)
	}
	mptcp, err := Select([]string{"kernel-mptcp:subflows=1", "kernel-mptcp:subflows=32", "kernel-bbr", "kernel-dctcp"})
	if err != nil || mptcp[0].Hosts.Subflows != 1 || mptcp[1].Hosts.Subflows != 32 || !mptcp[1].Hosts.MPTCP || mptcp[1].Where != Kernel ||
		mptcp[2].Hosts.Congestion != "bbr" || mptcp[2].MarkBytes != 0 || mptcp[3].MarkBytes == 0 {
		t.Errorf("%+v, %v", mptcp, err)
	}
	for _, bad := range []string{"kernel-mptcp:subflows=0", "kernel-mptcp:subflows=33", "kernel-mptcp:4", "kernel-mptcp:subflows=x"} {
		if _, err := Select([]string{bad}); err == nil || !strings.Contains(err.Error(), "1 to 32") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
	rows, err := Select([]string{"switch-letflow:gap=60ms", "switch-letflow"})
	if err != nil || rows[0].Balance != "letflow:gap=60ms" || rows[0].Where != Switch || rows[1].Balance != "letflow" {
		t.Errorf("%+v, %v", rows, err)
	}
	if _, err := Select(DefaultRows); err != nil {
		t.Error(err)
	}
	if _, err := Select([]string{"drb", "best"}); err == nil {
		t.Error("no error of an unknown row")
	}
	if _, err := Select([]string{"drb", "ecmp", "drb"}); err == nil {
		t.Error("no error of a row that is there twice")
	}
}
