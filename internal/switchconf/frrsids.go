package switchconf

import (
	"fmt"

	"weft/topology/graph"
)

// locator is the name of a switch's locator.
const locator = "weft"

// frrLocator has FRR know of a switch's locator. FRR 8.4 takes it; what is done at SIDs it
// leaves to others. It must come last: a daemon that does not know the words, as bgpd, takes
// the lines that leave the block for the end of the file.
func frrLocator(s graph.SIDs) []string {
	if s.None() {
		return nil
	}
	return []string{
		"segment-routing", " srv6", "  locators", "   locator " + locator,
		fmt.Sprintf("    prefix %v func-bits 16", s.Node),
		"   exit", "  exit", " exit", "exit",
	}
}

// StaticSIDs returns the lines in FRR's language for a switch whose FRR sets SIDs itself, as
// SONiC's does and FRR 10.3 can. They replace the locator of FRR. They are nil for a switch
// without SIDs. With Linux as what forwards, decap4 needs a VRF.
func StaticSIDs(g *graph.Graph, id graph.NodeID) []string {
	s := g.Node(id).SIDs
	if s.None() {
		return nil
	}
	lines := []string{
		"segment-routing", " srv6", "  locators", "   locator " + locator,
		fmt.Sprintf("    prefix %v block-len 32 node-len 16 func-bits 16", s.Node),
		"    behavior usid", "   exit", "  exit", "  static-sids",
		fmt.Sprintf("   sid %v locator %s behavior uN", s.Node, locator),
	}
	if s.Decap4 == s.Decap6 {
		lines = append(lines, fmt.Sprintf("   sid %v locator %s behavior uDT46 vrf default", s.Decap4, locator))
	} else {
		lines = append(lines,
			fmt.Sprintf("   sid %v locator %s behavior uDT4 vrf default", s.Decap4, locator),
			fmt.Sprintf("   sid %v locator %s behavior uDT6 vrf default", s.Decap6, locator))
	}
	return append(lines, "  exit", " exit", "exit")
}
