package results

// planned is how many seeds are run of each experiment: the fewest that decide an order.
const planned = 5

// perSeed are the seconds of CPU that a seed takes, of those experiments that have not
// been run yet. With -j cores they take that part of it.
var perSeed = map[string]float64{}
