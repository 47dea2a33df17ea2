package bgp

// MaxRoutes bounds a Table. A fabric of 1,152 racks with 24 uplinks each has fewer than
// 30,000 per family.
const MaxRoutes = 200_000

// Share returns how many routes each of some neighbours may have, so that none takes the
// others' place.
func Share(neighbors int) int { return MaxRoutes / max(neighbors, 1) }

const (
	// maxWays bounds the routes of a neighbour to one prefix: as many as a rack has paths.
	maxWays = 1024
	// maxASPath is the length of the longest AS path in a Clos: up and down again.
	maxASPath = 9
)

// What Spec makes of the routes is bounded, too, since hosts have tables of it. A fat-tree of
// 64-port switches has 5,120 switches, 2,048 racks and 131,072 links between switches.
const (
	maxSwitches     = 8192
	maxLinks        = 1 << 18
	maxRacks        = 8192 // prefixes of racks, of both families together
	maxRacksEach    = 64   // of one switch
	maxSharing      = 8    // edge switches of one rack
	maxAddresses    = 8    // of one switch in each family
	maxSwitchesOfAS = 256  // that share an AS
	maxGuesses      = 100  // lines
)
