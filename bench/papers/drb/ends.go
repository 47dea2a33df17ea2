package drb

import (
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
)

// everySecond has TCP acknowledge each second packet. §5 says that "TCP data packets and ACKs
// are of different packet sizes", not how many of the one there are for each of the other.
func everySecond(c *sim.Config) { c.TCP.AckEvery = 2 }

// atOnce has all hosts begin at the same time.
func atOnce(c *sim.Config) {
	if with, err := permute(*c, 0); err == nil {
		*c = with
	}
}

// bothKinds has the mean resequencing delay count acknowledgements.
var bothKinds = map[string]string{dataAlone: "data and acknowledgements"}

// ofNS3 is what a simulation in ns-3 has if its script does not say otherwise: TCP acknowledges
// each second packet (attribute DelAckCount), and applications start together. Each is tried
// alone and with the other, and with either way to take the mean delay of resequencing:
// together with averaged all eight. One setting must serve both fabrics of Fig. 6.
var ofNS3 = papers.Decision{
	Parameter: "acknowledgements and starts, as ns-3 has them, and packets that the mean resequencing delay is of", About: []string{"RB"},
	Ends: "RFC 1122 allows to acknowledge each second packet and no fewer; starts further apart than a packet is long are at random, whatever they are",
	Values: []papers.DecisionValue{
		{Name: "each second packet; data", Tune: everySecond},
		{Name: "each second packet; data and acknowledgements", Tune: everySecond, Replace: bothKinds},
		{Name: "all at once; data", Tune: atOnce},
		{Name: "each second packet, all at once; data", Tune: together(everySecond, atOnce)},
		{Name: "each second packet, all at once; data and acknowledgements", Tune: together(everySecond, atOnce), Replace: bothKinds},
		{Name: "all at once; data and acknowledgements", Tune: atOnce, Replace: bothKinds},
	},
}

// toFatTree is a decision of Fig. 6's fat-tree: there a mean of acknowledgements, too, was
// thought of because both our delays are 1.86 times the paper's, which makes it a fit.
func toFatTree(d papers.Decision) papers.Decision {
	d.Values = slices.Clone(d.Values)
	fitted := true
	for i, v := range d.Values {
		d.Values[i].Fitted = v.Replace != nil
		fitted = fitted && v.Replace != nil
	}
	if fitted {
		d.Ends = ""
	}
	return d
}

// together makes several changes.
func together(changes ...func(*sim.Config)) func(*sim.Config) {
	return func(c *sim.Config) {
		for _, change := range changes {
			change(c)
		}
	}
}

// ofWindows is what Windows does by itself, up to Server 2008 R2 and after: it acknowledges
// each second packet.
var ofWindows = papers.Decision{
	Parameter: "acknowledgements", About: []string{"RB", "ECMP"},
	Ends: "they are of each packet or each second one, as Windows has them; RFC 1122 allows no fewer", Discrete: true,
	Values: []papers.DecisionValue{{Name: "of each second packet", Tune: everySecond}},
}

// ofDeTail is the simulator of §5.4 by what is known of it from elsewhere, and not by Fig. 9.
// DeTail's own paper (Zats et al., SIGCOMM 2012) has 25 µs a switch, of which a full frame on
// its link takes 12.24; what is left, 12.76 µs, are transceivers, crossbar, forwarding and the
// cable. (We had not its text at hand.) NSC runs Linux's TCP, which scales its window, so that
// there the paper's 256 KB are in force; and it acknowledges each second packet.
var ofDeTail = papers.Decision{
	Parameter: "delay of a hop and TCP in DeTail's simulator, by DeTail's paper and Linux", About: []string{"RB"},
	Values: []papers.DecisionValue{
		{Name: "12.76 µs, 64 KB", Tune: asDeTail(effective, 1)},
		{Name: "12.76 µs, the stated 256 KB", Tune: asDeTail(stated, 1)},
		{Name: "12.76 µs, 64 KB, each second packet acknowledged", Tune: asDeTail(effective, 2)},
		{Name: "12.76 µs, the stated 256 KB, each second packet acknowledged", Tune: asDeTail(stated, 2)},
	},
}

// hopOfDeTail is a switch's delay in DeTail's paper without the time that a frame takes.
const hopOfDeTail = 12760 * time.Nanosecond

func asDeTail(window, ackEvery int) func(*sim.Config) {
	return func(c *sim.Config) {
		c.Delay, c.TCP.WindowBytes, c.TCP.AckEvery = hopOfDeTail, window, ackEvery
	}
}
