package spray

import (
	"slices"
	"testing"

	"weft/policy"
)

func TestReorders_allButPoliciesOfFlows(t *testing.T) {
	var keep []string
	for _, name := range append(policy.Names(), SwitchNames()...) {
		if !Reorders(name) {
			keep = append(keep, name)
		}
	}
	if want := []string{"ecmp", "switch-ecmp", "switch-wcmp", "switch-drill-flow"}; !slices.Equal(keep, want) {
		t.Errorf("order is kept by %v, want %v", keep, want)
	}
}
