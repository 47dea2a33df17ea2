package reorder

import (
	"math/rand/v2"

	"weft/bench/named"
	"weft/resequencer"
)

// Case is an input.
type Case struct {
	Name, About string
	flows       []int // how many, one measurement for each
	many        bool  // the number of flows can be chosen
	parse       bool  // headers are to be parsed
	loses       bool  // packets are missing, so that order can be lost
	input       func(flows, n int, rng *rand.Rand) []arrival
}

// known is how many packets come before the first round.
func (c Case) known(flows int) int {
	if c.many {
		return flows
	}
	return 0
}

// Cases returns all, in the order in which they run.
func Cases() []Case {
	one, many := []int{1}, []int{10_000, 100_000, 1_000_000}
	return []Case{
		{Name: "in-order", About: "one flow, in order", flows: one, input: inOrder},
		{Name: "reordered-1pct", About: "one packet in a hundred is late by 50", flows: one, input: reordered},
		{Name: "cells-4", About: "numbered flowcells of 45 segments that take 4 paths at once, interleaved packet by packet", flows: one, input: cells(4, 0)},
		{Name: "cells-16", About: "the same on 16 paths", flows: one, input: cells(16, 0)},
		{Name: "cells-4-skew", About: "the same on 4 paths, of which one is late by 540 packets: 9 flowcells overtake each of its own", flows: one, input: cells(4, 3*4*segmentsPerCell)},
		{Name: "loss-1pct", About: "numbered flowcells on one path; one packet in a hundred is lost and sent again 500 packets later", flows: one, loses: true, input: lossy},
		{Name: "bursts-uniform", About: "many flows in order, in bursts of 16, whose is chosen uniformly", flows: many, many: true, input: bursts(uniform)},
		{Name: "bursts-zipf", About: "the same, chosen by Zipf's law with exponent 1.1", flows: many, many: true, input: bursts(zipf)},
		{Name: "receive-core", About: "as bursts-uniform, with the headers to be parsed; weft takes a batch at once", flows: append(one, many...), many: true, parse: true, input: bursts(uniform)},
	}
}

// Impl is an implementation.
type Impl struct {
	Name, About string
	orders      bool // is to deliver in order what is not lost
	bounded     bool // by Config.Flows
	make        func(c Case, flows int) subject
}

// Impls returns all, in the order in which they take turns.
func Impls() []Impl {
	weft := func(d resequencer.Discipline, about string) Impl {
		return Impl{
			Name: d.String(), About: "weft's resequencer.Buffer, " + about,
			orders: true, bounded: true,
			make: func(c Case, flows int) subject { return newWeftBuffer(d, flows, c.parse) },
		}
	}
	return []Impl{
		weft(resequencer.Presto, "by flowcell"),
		weft(resequencer.Sequence, "by TCP sequence alone"),
		weft(resequencer.Juggler, "in which data in order waits, too, to be merged"),
		{
			Name: "gvisor-gro", About: "gVisor's stack/gro: merges within a batch, does not reorder; always parses headers",
			make: func(Case, int) subject { return newGvisorGRO() },
		},
		{
			Name: "sorted-list", About: "the plain thing: a map of flows, each with a sorted slice of what is held, for 10 ms", orders: true,
			make: func(Case, int) subject { return newSortedList() },
		},
	}
}

// SelectCases returns the cases with these names; all if there are no names.
func SelectCases(names []string) ([]Case, error) {
	return named.Keep("case", Cases(), func(c Case) string { return c.Name }, names)
}

// SelectImpls returns the implementations with these names; all if there are no
// names.
func SelectImpls(names []string) ([]Impl, error) {
	return named.Keep("implementation", Impls(), func(i Impl) string { return i.Name }, names)
}
