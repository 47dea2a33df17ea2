package faults

import (
	"errors"
	"syscall"
)

var ofUpdates = []Fault{
	{Name: "updates-filtered", What: "the host drops the switches' updates (UDP 9338)", Inject: filtering("input", "udp dport 9338", Observer),
		Cause: Cause{{"updates", "9338"}}},
	{Name: "updates-key", What: "the host has another key for updates than the switches", Start: true,
		Config: "failures:\n  keys:\n  - {id: 1, key_file: OTHERKEY}\n", Cause: Cause{{"failures.keys"}}},
	{Name: "wrong-topology", What: "the host's topology is of another size", Start: true, Config: "topology: fat-tree:k=6\n",
		Cause: Cause{{"topology", "fat-tree:k=6"}}},
	{Name: "misnamed", What: "a switch takes itself for another (node: in its configuration)", Node: "e0.0", Inject: misnamed("a0.3", "a1.3"),
		Cause: Cause{{"a1.3", "speaks"}}, At: []string{"a0.3"}},
	{Name: "miscabled", What: "two cables of an aggregation switch are swapped", Node: "a0.2", Inject: swapped("a0.2", "c1.1", "c1.2"),
		Cause: Cause{{"c1.2 speaks"}, {"c1.1 speaks"}}, At: []string{"c1.1", "c1.2"}},
	{Name: "agent-dead", What: "the agent of the edge switch is killed", Inject: agentKilled("e0.0"),
		Cause: Cause{{"weft switch has ended"}, {"weft switch", "not run"}}, At: []string{"e0.0"}, Fabric: true},
}

// misnamed starts the agent of a switch anew, as another.
func misnamed(node, as string) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		again := func(as string) error { return errors.Join(b.stop(node), b.startAgent(node, as)) }
		return func() error { return again(node) }, again(as)
	}
}

// agentKilled kills weft switch, and starts it anew.
func agentKilled(node string) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		heal := func() error { return errors.Join(b.stop(node), b.startAgent(node, node)) }
		return heal, b.signal(node, syscall.SIGKILL)
	}
}
