package policy_test

import (
	"fmt"

	"weft/drb"
	"weft/policy"
)

// A policy is a unit times a rule. The rule makes an order over the live paths, which a
// selector goes through: here digit reversal over two uplinks with two cores each.
func Example() {
	p, err := policy.New("drb", policy.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Unit, "by", p.Rule)
	fmt.Println(p.Rule.Order([]int{2, 2}, []int{0, 1, 2, 3}))

	presto, _ := policy.New("presto", policy.Options{})
	fmt.Println(presto.Unit, "by", presto.Rule)
	fmt.Println(presto.Rule == drb.RoundRobin)
	// Output:
	// packet by digit reversal
	// [0 2 1 3]
	// flowcell of 64 KB by round robin
	// true
}
