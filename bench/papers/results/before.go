package results

// before are the verdicts of bench/RESULTS.md of 2026-11-22, by the rules that counted
// bounds, rows of our own and orders of one seed.
var before = map[string]string{
	"drb-appendix-b": order, "drb-f6-fattree": agreed, "drb-f6-vl2": disagreed, "drb-f7": order, "drb-f9": order,
	"drb-5.5": order, "drb-f10": order, "drb-f11": order, "drb-f12": order,
	"luopan-f2": order, "luopan-f9": disagreed, "luopan-f10": disagreed, "luopan-f11": agreed, "luopan-f12": agreed,
	"luopan-f13": order, "luopan-f14": order, "luopan-f15": order, "luopan-f16": disagreed, "luopan-f17": agreed,
	"luopan-f18": order, "luopan-f19": order, "luopan-t1": order,
	"drill-f2": order, "drill-f3": disagreed, "drill-f6": order, "drill-f7": order, "drill-f11a": disagreed,
	"drill-f11": order, "drill-f12": disagreed, "drill-f13": disagreed, "drill-f14": disagreed, "drill-t1": disagreed,
	"conga-f9": disagreed, "conga-f10": order, "conga-f11": order, "conga-f12": agreed, "conga-f15": order, "conga-f16": disagreed,
	"thesis-t3.1": order, "thesis-3.1.7": agreed,
	"hedera-t4.3": order, "hedera-t4.4": order, "hedera-t4.5": order, "hedera-t4.6": order, "hedera-8192": order,
}

const (
	agreed    = "agrees"
	order     = "order"
	disagreed = "disagrees"
)
