package results

// known are the mutants that pass, by experiment and mutant, with the reason. There is no
// other place for one: weft sim mutants fails on those that are not here.
var known = map[[2]string]string{
	{"conga-f13", "CONGA hashes flows"}:                                "Incast fills the client's own link, and the paper says that it does not stress the fabric: what the experiment shows is of MPTCP, whose mutants fail",
	{"conga-f14", "CONGA has no feedback: flowlets take random paths"}: "flowlets by random paths end the job as soon, with the failure and without, so all rows hold without feedback as well",
	{"drb-f8", "DRB chooses at random"}:                                "random choices get more than MPTCP's 32 subflows, too: the figure sets spraying against MPTCP, and no row tells in which order packets are sprayed",
	{"drb-f12", "hosts never learn of failures"}:                       "8 Gbit/s for 48 keep the paper's orders, too; the figures tell, but the paper's losses are out without the mutant as well",
	{"luopan-f2", "luopan chooses at random"}:                          "random choices keep what the paper says here, too, which is of Presto's tail; in the small form luopan itself disagrees",
	{"luopan-f17", "luopan chooses at random"}:                         "random choices keep the paper's one order, too, and the figure that tells is their only other row; in the small form luopan itself disagrees",
	{"thesis-f5.14", "RED's max_p are a hundredth"}:                    "the small form is too short for the average of the queue; in the full form the mutant fails",
}

// Known is the reason why a mutant is known to pass; "": it is not known to.
func Known(experiment, mutant string) string { return known[[2]string{experiment, mutant}] }
