package results

// known are the mutants that pass, by experiment and mutant, with the reason. There is no
// other place for one: weft sim mutants fails on those that are not here.
var known = map[[2]string]string{
	{"drill-f11", "DRILL takes random ports"}:                          "random ports are as good in the small form, and the paper's figure has no Random beside DRILL",
	{"conga-f12", "CONGA has no feedback: flowlets take random paths"}: "flowlets on random paths are as even in the small form",
	{"thesis-t3.1", "the classifier moves no flow"}:                    "the first placement of flows does all; what is moved later changes no row's verdict",
}

// Known is the reason why a mutant is known to pass; "": it is not known to.
func Known(experiment, mutant string) string { return known[[2]string{experiment, mutant}] }
