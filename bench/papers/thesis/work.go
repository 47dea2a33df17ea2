package thesis

import (
	"context"
	"fmt"
	"math"

	"weft/bench/papers"
	"weft/bench/sim/fluid"
	"weft/hedera"
)

// The thesis gives run times of its own machine. Run times are never the same twice, so
// here operations are counted: how often a flow is visited. Their growth can be compared.

type row45 struct {
	k, flows int
	ms       float64
}

var table45Rows = []row45{
	{16, 1_024, 1.45}, {16, 5_000, 4.14},
	{32, 8_192, 2.71}, {32, 25_000, 9.23}, {32, 50_000, 26.31},
	{48, 27_648, 6.91}, {48, 100_000, 51.30}, {48, 250_000, 199.43},
}

func table45() papers.Experiment {
	return papers.Experiment{
		Name: "hedera-t4.5", Source: "thesis §4.4.4, Table 4.5",
		Title: "how the work of estimating demands grows with flows",
		Setting: []papers.Parameter{
			stated("fabric", "fat-trees of 1,024, 8,192 and 27,648 hosts"),
			chosen("traffic", "each flow to any other host", "not stated"),
			chosen("measure", "how often a flow is looked at, of the first row of as many hosts", "the thesis has milliseconds of 4 threads of another machine"),
		},
		Mutants:   []papers.Mutant{{Name: "the estimator looks at each flow once", About: []string{"flows"}, Replace: map[string]string{"estimator": ""}}},
		Decisions: []papers.Decision{estimatorBarriers, estimatorStart, estimatorStartByFirst},
		Run:       runTable45,
	}
}

// estimatorBarriers is what waiting for each other costs the thesis' 4 threads. All senders
// must have been looked at before the first receiver is, and all receivers before the next
// pass (Fig. 4.4), so a pass has two barriers. A look takes 12 to 27 ns by the thesis' own
// times of the most flows of a fabric; here it is 25 ns, so 1 µs is as long as 40 looks. The
// last value moves rows, and is 0.25 to 0.5 ms by these times, which no barrier needs: a fit.
var estimatorBarriers = papers.Decision{
	Parameter: "time of a barrier of the 4 threads", About: []string{"flows"},
	Ends: "threads that spin meet within 2 µs, and those that the kernel wakes need 50 at most",
	Values: []papers.DecisionValue{
		{Name: "2 µs", Replace: map[string]string{"barrier": "80"}},
		{Name: "5 µs", Replace: map[string]string{"barrier": "200"}},
		{Name: "10 µs", Replace: map[string]string{"barrier": "400"}},
		{Name: "20 µs", Replace: map[string]string{"barrier": "800"}},
		{Name: "50 µs", Replace: map[string]string{"barrier": "2000"}},
		{Name: "20,000 looks", Replace: map[string]string{"barrier": "20000"}, Fitted: true},
	},
}

// estimatorStart is fitted: four of the thesis' five rows want from 52,000 to 62,000 looks,
// that of 1,024 hosts 39,000. The thesis does not say what starting its threads takes.
var estimatorStart = papers.Decision{
	Parameter: "start that does not grow with flows, in looks at a flow", About: []string{"flows"},
	Values: []papers.DecisionValue{
		{Name: "40,000", Replace: map[string]string{"start": "40000"}, Fitted: true},
		{Name: "60,000", Replace: map[string]string{"start": "60000"}, Fitted: true},
	},
}

// estimatorStartByFirst takes the start from the times of one flow a host in two fabrics, which
// differ by less than the flows. Each pair of the three fabrics gives a start. Rows compare more
// flows with these times, so all are fitted.
var estimatorStartByFirst = papers.Decision{
	Parameter: "start that does not grow with flows, by the times of one flow a host", About: []string{"flows"},
	Values: []papers.DecisionValue{
		{Name: "of 1,024 and 8,192 hosts", Replace: map[string]string{"start by": "0 2"}, Fitted: true},
		{Name: "of 1,024 and 27,648 hosts", Replace: map[string]string{"start by": "0 5"}, Fitted: true},
		{Name: "of 8,192 and 27,648 hosts", Replace: map[string]string{"start by": "2 5"}, Fitted: true},
	},
}

// startBy is the work that does not grow with flows by the times of two rows, if what grows is
// all else.
func startBy(o papers.Options, visits []float64) float64 {
	as := o.As("start by")
	if as == "start by" {
		return 0
	}
	var a, b int
	if _, err := fmt.Sscan(as, &a, &b); err != nil {
		panic(fmt.Sprintf("thesis: start by %q: %v", as, err))
	}
	less, more := table45Rows[a].ms, table45Rows[b].ms
	return (visits[b]*less - visits[a]*more) / (more - less)
}

// counted calls count for each row on the row's fat-tree with the row's number of flows,
// each to any other host. A quick run counts two rows. It returns the rows that it has counted.
func counted[R any](ctx context.Context, o papers.Options, out *papers.Outcome, rows []R, of func(R) (k, flows int), count func(i int, f *fluid.Fabric, all []hedera.Pair) error) ([]R, error) {
	if o.Quick {
		rows = rows[:2]
		out.Settings = append(out.Settings, chosen("fabric", "1,024 hosts", "quick"))
	}
	return rows, papers.Each(ctx, o, len(rows), func(i int) error {
		k, flows := of(rows[i])
		t, f, err := fabricOf(fatTree(k))
		if err != nil {
			return err
		}
		all, err := uniform(t, flows, o.Seed)
		if err != nil {
			return err
		}
		return count(i, f, all)
	})
}

func runTable45(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	visits := make([]float64, len(table45Rows))
	fixed := make([]float64, len(table45Rows)) // what does not grow with flows, in visits
	rows, err := counted(ctx, o, out, table45Rows, func(r row45) (k, flows int) { return r.k, r.flows },
		func(i int, f *fluid.Fabric, all []hedera.Pair) error {
			var e hedera.Estimator
			e.Estimate(all, f.Hosts())
			if visits[i] = float64(e.Visits); o.As("estimator") == "" {
				visits[i] = float64(len(all))
			}
			fixed[i] = besides(o, "start") + besides(o, "barrier")*2*float64(e.Passes)
			return nil
		})
	if err != nil {
		return nil, err
	}
	start := 0.0
	if !o.Quick { // which has one fabric alone
		start = startBy(o, visits)
	}
	first, perFlow, linear := 0, 0.0, true
	for i, r := range rows {
		label := fmt.Sprintf("%d hosts, %d flows", r.k*r.k*r.k/4, r.flows)
		if r.k != rows[first].k {
			first = i
		}
		if i > first {
			out.Rows = append(out.Rows,
				papers.Ratio(label, "work, of the first row's", r.ms/rows[first].ms, start+fixed[i]+visits[i], start+fixed[first]+visits[first], tolerance))
		}
		perFlow = visits[i] / float64(r.flows)
		linear = linear && perFlow < maxVisits
		out.Rows = append(out.Rows, papers.Info(label, "visits per flow", perFlow))
	}
	out.Rows = append(out.Rows, papers.Sign(fmt.Sprintf("O(|F|): never above %d visits per flow", maxVisits), linear).Own())
	explain(out, o, "more flows of a host take more rounds to converge; the thesis' times have besides what does not grow with flows, 1.4 µs each of 1,024, 0.25 µs each of 27,648; a start fitted to its times of one flow a host would give four of the five rows; what it is we do not know: barriers of its 4 threads, two in each pass, would have to take 0.25 to 0.5 ms each by its own times of a look")
	return out, nil
}

// besides is work that a decision adds to what is counted; 0 where there is none.
func besides(o papers.Options, what string) (visits float64) {
	if as := o.As(what); as != what {
		fmt.Sscan(as, &visits)
	}
	return visits
}

// maxVisits is the bound on the work per flow.
const maxVisits = 64

type row46 struct {
	k, flows int
	ms       [3]float64
}

var table46Rows = []row46{
	{16, 3_215, [3]float64{2.997, 12.209, 23.447}},
	{16, 6_250, [3]float64{5.042, 20.848, 40.255}},
	{32, 25_000, [3]float64{6.898, 19.091, 32.912}},
	{32, 50_000, [3]float64{11.573, 32.079, 55.741}},
}

var table46Iterations = [3]int{1_000, 5_000, 10_000}

func table46() papers.Experiment {
	return papers.Experiment{
		Name: "hedera-t4.6", Source: "thesis §4.4.4, Table 4.6",
		Title: "how the work of simulated annealing grows with iterations, flows and hosts",
		Setting: []papers.Parameter{
			stated("fabric", "fat-trees of 1,024 and 8,192 hosts"),
			stated("c", "1000 T0"),
			chosen("traffic", "each flow to any other host", "not stated"),
			chosen("measure", "how often a flow is moved, the first placing of all included, of that for 1,000 iterations", "the thesis has milliseconds of another machine"),
		},
		Mutants: []papers.Mutant{{Name: "simulated annealing moves each flow once", About: []string{"iteration"}, Replace: map[string]string{"SA": ""}}},
		Decisions: []papers.Decision{
			{Parameter: "cost of going back from a neighbour", About: []string{"flows"},
				Ends: "as much as going there, or nothing, where the difference of energies is computed before (§4.2.4)", Discrete: true,
				Values: []papers.DecisionValue{{Name: "nothing", Replace: map[string]string{"undone": ""}}}},
			// A neighbour takes five random numbers and an exponential, 100 to 200 ns; a move books
			// a flow at four links, 50 to 100 ns.
			{Parameter: "cost of an iteration that does not grow with flows, in moves", About: []string{"flows"},
				Ends: "five random numbers and an exponential take 100 to 200 ns, booking a flow at four links 50 to 100",
				Values: []papers.DecisionValue{
					{Name: "1", Replace: map[string]string{"iteration": "1"}},
					{Name: "2", Replace: map[string]string{"iteration": "2"}},
					{Name: "4", Replace: map[string]string{"iteration": "4"}},
					{Name: "8", Replace: map[string]string{"iteration": "8"}, Fitted: true},
				}},
			// The rows of 1,024 hosts want from 2.4 to 2.6; those of 8,192 are within tolerance with 1.
			{Parameter: "cost of placing a flow at the start, in moves", About: []string{"flows"},
				Values: []papers.DecisionValue{{Name: "2.5", Replace: map[string]string{"placing": "2.5"}, Fitted: true}}},
			// Both parameters are open at once. This decision was added when each had been tried by
			// itself, to move the rows that were left, so its values are fits.
			{Parameter: "cost of an iteration besides, in moves, where going back costs nothing", About: []string{"flows"},
				Values: []papers.DecisionValue{
					{Name: "1", Replace: map[string]string{"undone": "", "iteration": "1"}, Fitted: true},
					{Name: "2", Replace: map[string]string{"undone": "", "iteration": "2"}, Fitted: true},
					{Name: "4", Replace: map[string]string{"undone": "", "iteration": "4"}, Fitted: true},
				}},
			iterationByOthers,
		},
		Run: runTable46,
	}
}

// iterationByOthers takes the cost of an iteration besides from the thesis' times of the other
// fabric, so that no row has a cost that its own times gave: rows of 1,024 hosts have that of
// 8,192 hosts, and these that of 1,024. It is fitted all the same: both are times of the table that
// it explains, and that some 4 moves do so was known.
var iterationByOthers = papers.Decision{
	Parameter: "cost of an iteration besides, by the times of the other number of hosts, where going back costs nothing", About: []string{"flows"},
	Values: []papers.DecisionValue{{Name: "what these times have", Replace: map[string]string{"undone": "", "iteration by": "others"}, Fitted: true}},
}

// iterationCost is what an iteration costs besides its moves, in moves, by the times of two
// numbers of flows: a time is that of moves and of so many besides.
func iterationCost(rows []row46, visits [][len(table46Iterations)]float64) float64 {
	each := func(i int) (ms, moves float64) { // of the last iterations
		return rows[i].ms[2] - rows[i].ms[1], (visits[i][2] - visits[i][1]) / float64(table46Iterations[2]-table46Iterations[1])
	}
	less, few := each(0)
	more, many := each(1)
	return (less*many - more*few) / (more - less)
}

func runTable46(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	visits := make([][len(table46Iterations)]float64, len(table46Rows))
	rows, err := counted(ctx, o, out, table46Rows, func(r row46) (k, flows int) { return r.k, r.flows },
		func(i int, f *fluid.Fabric, all []hedera.Pair) error {
			var e hedera.Estimator
			demand := e.Estimate(all, f.Hosts())
			for j, n := range table46Iterations {
				a, err := newAnnealing(f, n, o.Seed)
				if err != nil {
					return err
				}
				a.Schedule(all, demand)
				if visits[i][j] = float64(a.Visits); o.As("SA") == "" {
					visits[i][j] = float64(len(all))
				}
				if o.As("undone") == "" {
					visits[i][j] -= float64(a.Undone)
				}
				visits[i][j] += besides(o, "iteration") * float64(n)
				if placing := besides(o, "placing"); placing > 0 {
					visits[i][j] += (placing - 1) * float64(len(all))
				}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	if o.As("iteration by") == "others" && len(rows) == 4 { // a quick run has one fabric alone
		small, great := iterationCost(rows[:2], visits[:2]), iterationCost(rows[2:], visits[2:])
		for i, besides := range [...]float64{great, great, small, small} {
			for j, n := range table46Iterations {
				visits[i][j] += besides * float64(n)
			}
		}
	}
	perIteration := make([]float64, len(rows))
	for i, r := range rows {
		label := fmt.Sprintf("%d hosts, %d flows", r.k*r.k*r.k/4, r.flows)
		for j := 1; j < len(table46Iterations); j++ {
			out.Rows = append(out.Rows, papers.Ratio(fmt.Sprintf("%s, %d iterations", label, table46Iterations[j]),
				"work, of that for 1,000", r.ms[j]/r.ms[0], visits[i][j], visits[i][0], tolerance))
		}
		out.Rows = append(out.Rows, papers.Sign(label+": ten times the iterations take less than ten times the work", visits[i][2] < 10*visits[i][0]).Own())
		if i%2 == 1 {
			out.Rows = append(out.Rows, papers.Ratio(label+", 10000 iterations", "work, of that for half as many flows",
				r.ms[2]/rows[i-1].ms[2], visits[i][2], visits[i-1][2], tolerance))
		}
		perIteration[i] = (visits[i][2] - visits[i][1]) / float64(table46Iterations[2]-table46Iterations[1])
		out.Rows = append(out.Rows, papers.Info(label, "moves per iteration", perIteration[i]))
	}
	for i := 2; i < len(rows); i++ {
		perHost := func(i int) float64 { return float64(rows[i].flows) / math.Pow(float64(rows[i].k), 3) }
		ratio := perIteration[i] / perIteration[i-2] * perHost(i-2) / perHost(i)
		out.Rows = append(out.Rows, papers.Sign(fmt.Sprintf("%d and %d flows: an iteration costs by flows per host, within 10 %%, not by hosts", rows[i-2].flows, rows[i].flows),
			math.Abs(ratio-1) <= .1).Own())
	}
	explain(out, o, "an iteration of the thesis' has a part that does not depend on flows, twice the flows take 1.7 times as long; and where the difference of two states' energies is computed before the move, as it says, nothing is moved back, which ours counts; with that, and what an iteration costs besides by the times of the other number of hosts, all rows of 1,024 hosts are within tolerance, and both of twice the flows")
	return out, nil
}
