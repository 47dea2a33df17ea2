package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// triedFits are the fitted values that were ever tried, by experiment and parameter. A row
// that one of them moves is not called immovable, so without the value a verdict would look
// better than it is: none may go. "The closest of 40 sets", and of 200 mappings, to each row
// of thesis-t3.1 and hedera-t4.3 went: no row is immovable by mappings that are drawn.
var triedFits = map[[2]string][]string{
	{"drill-f3", "for how long engines do not see one another's packets"}: {"400ns"},
	{"drill-f12", "link delay"}:                                               {"850µs"},
	{"drill-f12", "one size of all flows"}:                                    {"2 MB each"},
	{"drill-f12", "paths over which DRILL spreads packets"}:                   {"all"},
	{"drill-f13", "paths over which DRILL spreads packets"}:                   {"all"},
	{"drill-t1", "hosts of a leaf"}:                                           {"4"},
	{"drill-f2", "for how long engines do not see one another's packets"}:     {"400ns"},
	{"drb-5.5", "window"}:                                                     {"80 KB", "96 KB", "112 KB"},
	{"drb-f9", "window"}:                                                      {"96 KB", "128 KB", "160 KB"},
	{"drb-f6-fattree", "packets of which the resequencing delay is the mean"}: {"data and acknowledgements"},
	{"drb-f6-fattree", "acknowledgements and starts, as ns-3 has them, and packets that the mean resequencing delay is of"}: {
		"each second packet; data and acknowledgements", "each second packet, all at once; data and acknowledgements", "all at once; data and acknowledgements",
	},
	{"drb-f9", "delay of a hop and window, two parameters fitted to six figures"}:                                              {"30 µs and 160 KB"},
	{"hedera-t4.3", "fields that the simulator's ECMP hashes"}:                                                                 {"the destination's pod", "nothing: one of equal routes is kept"},
	{"hedera-t4.3", "mapping of a random pattern, where one of equal routes is kept"}:                                          sets("200"),
	{"hedera-t4.5", "start that does not grow with flows, in looks at a flow"}:                                                 {"40,000", "60,000"},
	{"hedera-t4.5", "start that does not grow with flows, by the times of one flow a host"}:                                    {"of 1,024 and 8,192 hosts", "of 1,024 and 27,648 hosts", "of 8,192 and 27,648 hosts"},
	{"hedera-t4.5", "time of a barrier of the 4 threads"}:                                                                      {"20,000 looks"},
	{"hedera-t4.6", "cost of an iteration besides, in moves, where going back costs nothing"}:                                  {"1", "2", "4"},
	{"hedera-t4.6", "cost of an iteration that does not grow with flows, in moves"}:                                            {"8"},
	{"hedera-t4.6", "cost of placing a flow at the start, in moves"}:                                                           {"2.5"},
	{"drb-f10", "hash of ECMP, and traffic within pods as drb-f12's figures have it"}:                                          {"the same at both layers of switches; none"},
	{"hedera-8192", "period of the simulator's scheduling"}:                                                                    {"1 s"},
	{"hedera-t4.6", "cost of an iteration besides, by the times of the other number of hosts, where going back costs nothing"}: {"what these times have"},
	{"thesis-f5.17", "times at which the virtual queue is recorded"}:                                                           {"every millisecond", "every 10 ms", "every 100 ms", "every second"},
	{"drill-t1", "TCP's window"}:                                                                          wideWindows,
	{"thesis-f5.11", "rate of each of the two hosts"}:                                                     {"5 Gbit/s"},
	{"thesis-t2.1", "core switches of the hierarchy"}:                                                     {"16", "24"},
	{"thesis-t2.2", "core switches of the hierarchy"}:                                                     {"16", "24"},
	{"thesis-t2.2", "hosts per port of the aggregation layer"}:                                            {"10"},
	{"thesis-t3.1", "five mappings of the worst cases"}:                                                   sets("40 sets"),
	{"thesis-t3.1", "five mappings of the pattern random"}:                                                sets("40 sets"),
	{"hedera-t4.3", "mapping of a random pattern"}:                                                        sets("200"),
	{"hedera-t4.2", "part of a full port's rate that TCP's flows get where they meet"}:                    tenths,
	{"hedera-t4.2", "part of a full port's rate where flows meet, and annealing places at the next tick"}: tenths,
	{"thesis-f5.10", "sequence of a bump's times"}:                                                        bumps,
	{"thesis-f5.12", "sequence of a bump's times"}:                                                        bumps,
	{"thesis-t3.1", "receivers of the pattern same-ID outgoing"}:                                          {"some share one, against the thesis' words"},
	{"thesis-t3.2", "memory of the table of flows besides its entries"}:                                   {"Click's buckets, pointers of 4 bytes", "Click's buckets, pointers of 8 bytes", "pages of 4 KB"},
}

var (
	wideWindows = []string{"256 KB", "1 MB"}
	tenths      = []string{"90 %", "80 %", "70 %", "60 %", "50 %", "40 %", "30 %", "20 %", "10 %"}
	bumps       = []string{"the same within 100 µs", "the same within a millisecond", "the same within 10 ms", "the same within 100 ms"}
)

// The experiments with DRILL's trace have the same ones.
func init() {
	for name := range strings.FieldsSeq("drill-f6 drill-f7 drill-f9 drill-f10 drill-f11a drill-f11 drill-f12 drill-f13 drill-f14") {
		triedFits[[2]string{name, "TCP's window"}] = wideWindows
		triedFits[[2]string{name, "flow sizes"}] = []string{"fb_memcached_rpc"}
		triedFits[[2]string{name, "part of the leaves that sends"}] = []string{
			"any host, to any of another leaf", "hosts of every second leaf, to those of all other leaves",
			"hosts of every eighth leaf, to those of all other leaves", "hosts of every sixteenth leaf, to those of all other leaves",
		}
		triedFits[[2]string{name, "flows that begin at once in a rack, if all leaves send"}] = []string{
			"4 flows begin at once, from hosts of one rack", "16 flows begin at once, from hosts of one rack", "60 flows begin at once, from hosts of one rack",
		}
	}
}

// sets are the quantiles of mappings.
func sets(of string) (names []string) {
	for _, percent := range []int{0, 10, 25, 50, 75, 90, 100} {
		names = append(names, fmt.Sprintf("at %d %% of %s", percent, of))
	}
	return names
}

// Every fitted value is in the list, and everything in the list is still a fitted value.
func TestStored_fitsStay(t *testing.T) {
	found := make(map[[2]string][]string)
	for _, e := range experiments() {
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				if key := [2]string{e.Name, d.Parameter}; v.Fitted {
					found[key] = append(found[key], v.Name)
					if !slices.Contains(triedFits[key], v.Name) {
						t.Errorf("%q: %q is fitted: put it on the list, so that it stays", key, v.Name)
					}
				}
			}
		}
	}
	for key, values := range triedFits {
		for _, v := range values {
			if !slices.Contains(found[key], v) {
				t.Errorf("%q: %q was tried and is no fitted value any more: without it the verdict flatters", key, v)
			}
		}
	}
}
