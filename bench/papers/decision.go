package papers

import "weft/bench/sim"

// Decision runs an experiment again with other values of one parameter that the paper
// leaves open, to decide what rows that are out depend on: a row that is OK with one of
// them depends on the parameter, and one that is OK with none of all plausible ones does
// not.
type Decision struct {
	Parameter string // "buffer of each port"
	// About are words of the labels of rows that it speaks of, as Mutant.About.
	About []string
	// Ends says why no other value is plausible; empty: the values do not span all that is.
	Ends   string
	Values []DecisionValue
}

// DecisionValue is a value of a Decision, other than the one that the experiment itself
// has.
type DecisionValue struct {
	Name string // "160 KB"
	// Replace is as in Mutant, and may name anything else that Run asks Options.As of: for a
	// value that no configuration has, such as the number of hosts.
	Replace map[string]string
	// Tune changes the configuration of every simulation, as in Mutant; nil: not.
	Tune func(*sim.Config)
}
