package results

import "weft/bench/papers"

// moreSeeds are the experiments of which more than papers.EnoughSeeds are run: figures of few
// large flows, or of failed links that the seed draws, differ much from seed to seed.
var moreSeeds = map[string]int{
	"conga-f10": 10, "conga-f11": 10, "conga-f12": 10, "conga-f13": 10, "conga-f14": 10, "conga-f15": 10, "conga-f16": 10,
}

// Planned is how many seeds are run of an experiment: the fewest that decide an order, or more.
func Planned(experiment string) int { return max(moreSeeds[experiment], papers.EnoughSeeds) }

// perSeed are the seconds of CPU that one seed takes: on one busy machine measured for
// drb-f6-fattree, drb-f9 to -f12, drb-appendix-b, drill-f6 to -f14, conga-f12, thesis-* and hedera-*, and
// estimated for all others, by the hosts, loads and times of their runs. With -j cores a
// run takes as much less time.
var perSeed = map[string]float64{
	"drb-appendix-b": 54, "drb-f6-fattree": 85, "drb-f6-vl2": 60, "drb-f7": 120, "drb-f8": 300, "drb-f9": 21,
	"drb-5.5": 160, "drb-f10": 21, "drb-f11": 18, "drb-f12": 11,
	"luopan-f2": 120, "luopan-f9": 150, "luopan-f10": 150, "luopan-f11": 150, "luopan-f12": 90,
	"luopan-f13": 150, "luopan-f14": 150, "luopan-f15": 120, "luopan-f16": 180, "luopan-f17": 120,
	"luopan-f18": 120, "luopan-f19": 120, "luopan-t1": 120,
	"drill-f2": 120, "drill-f3": 60, "drill-f6": 26, "drill-f7": 16, "drill-f9": 12, "drill-f10": 6, "drill-f11a": 11,
	"drill-f11": 20, "drill-f12": 17, "drill-f13": 22, "drill-f14": 11, "drill-t1": 90,
	"conga-f9": 120, "conga-f10": 120, "conga-f11": 120, "conga-f12": 63, "conga-f13": 30, "conga-f14": 90, "conga-f15": 120, "conga-f16": 60,
	"thesis-t2.1": 1, "thesis-t2.2": 1, "thesis-t3.1": 4, "thesis-t3.2": 1, "thesis-3.1.7": 1,
	"hedera-t4.2": 6, "hedera-t4.7": 1,
	"thesis-f5.10": 1, "thesis-f5.11": 1, "thesis-f5.12": 1, "thesis-f5.14": 2, "thesis-f5.15": 2, "thesis-f5.16": 10, "thesis-f5.17": 3,
	"hedera-t4.3": 2, "hedera-t4.4": 35, "hedera-t4.5": 1, "hedera-t4.6": 1, "hedera-8192": 33,
}

// Cost is about how many seconds of CPU one seed of an experiment takes; 1 if nobody knows.
func Cost(experiment string) float64 {
	if s, ok := perSeed[experiment]; ok {
		return s
	}
	return 1
}
