package simfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/config"
	"weft/internal/exitcode"
)

// good is a file that every test of errors changes in one place.
const good = `topology: leaf-spine:leaves=2,spines=2,hosts=2,host-rate=1000,fabric-rate=1000
policies: [ecmp, drb]
traffic:
  matrix: other-racks
  sizes: {cdf: websearch_dctcp, scale: 0.01}
  arrivals: poisson
  loads: [0.2, 0.5]
duration: 5ms
`

func TestParse_errorsNameLineKeyAndFix(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "graph.yaml", graphText)
	write(t, dir, "norates.yaml", strings.ReplaceAll(graphText, ", rate: 100}", "}"))
	write(t, dir, "bad.txt", "0 0\n5 x\n")
	name := filepath.Join(dir, "own.yaml")
	const fabric = "topology: leaf-spine:leaves=2,spines=2,hosts=2,host-rate=1000,fabric-rate=1000"
	together := func(matrix string) []string {
		return []string{"  matrix: other-racks\n", "  matrix: " + matrix + "\n", "  arrivals: poisson\n  loads: [0.2, 0.5]\n", "  arrivals: together\n"}
	}
	with := func(text string) []string { return []string{"duration: 5ms\n", "duration: 5ms\n" + text + "\n"} }
	for _, c := range []struct {
		change []string // old, new, ...
		says   []string
	}{
		{[]string{"policies:", "polices:"}, []string{"own.yaml:2: ", "polices", "did you mean policies?"}},
		{with("speed: 1"), []string{"own.yaml:9: ", "speed", "unknown key"}},
		{with("duration: 5ms"), []string{"own.yaml:9: ", "given twice"}},
		{with("tcp: {wndow: 1}"), []string{"own.yaml:9: ", "tcp.wndow", "known: mss"}},
		{with("tcp: {mss: 10}"), []string{"own.yaml:9: ", "tcp.mss", "give it 64 to 65535"}},
		{with("tcp: {mss: 9000, window_bytes: 8000}"), []string{"tcp.window_bytes", "give it a segment"}},
		{with("tcp: {dctcp: true, ecn: true}"), []string{"tcp.ecn", "choose one"}},
		{with("tcp: {mss: many}"), []string{"own.yaml:9: ", "tcp.mss", "digits alone"}},
		{with("queues: [{bytes: 0}]"), []string{"own.yaml:9: ", "queues[0].bytes", "write from 1"}},
		{with("queues: [{rate_mbit: 10, bytes: 5000}]"), []string{"queues", "none is for links of 1000"}},
		{with("queues: [{bytes: 9000, mark_bytes: 3000}]"), []string{"queues[0].mark_bytes", "dctcp: true"}},
		{with("queues: [{bytes: 9000}, {bytes: 8000}]"), []string{"queues[1].rate_mbit", "given twice"}},
		{with("delay: 2s"), []string{"own.yaml:9: ", "delay", "want from 0 to 1s"}},
		{with("host_queue_bytes: -1"), []string{"host_queue_bytes", "-1"}},
		{with("resequencer: {enabled: yes}"), []string{"resequencer.enabled", "one of auto, true and false"}},
		{with("resequencer: {enabled: true, discipline: order}"), []string{"resequencer.discipline", "presto, sequence, juggler, off"}},
		{with("resequencer: {hold: 2h}"), []string{"resequencer.hold", "at most 1h"}},
		{with("resequencer: {min_hold: -1s}"), []string{"resequencer.min_hold", "more than 0"}},
		{append(with("options: {drill_samples: 99}"), "[ecmp, drb]", "[ecmp, switch-drill]"), []string{"options.drill_samples", "from 1 to 32"}},
		{with("options: {flowlet_gap: 1ns}"), []string{"options.flowlet_gap", "1ns"}},
		{with("failures: [{at: 1ms}]"), []string{"failures[0].links", "missing; write links by their ends, such as [e0.0-a0.0]"}},
		{with("failures: [{at: 1ms, links: [e9.0-a0.0]}]"), []string{"own.yaml:9: ", "failures[0].links[0]", "e9.0"}},
		{with("failures: [{at: 1h, links: [e0.0-a0.0]}]"), []string{"failures[0].at", "when the run ends"}},
		{with("failures: [{at: 0s, links: [e0.0-a0.0], told: -1s}]"), []string{"failures[0].told", "write from 0s"}},
		{with("warmup: 5ms"), []string{"warmup", "less than duration, 5ms"}},
		{with("seeds: 0"), []string{"seeds", "from 1 to 1000"}},
		{with("seed: -1"), []string{"seed", "0 or more"}},
		{with("drain: 2h"), []string{"drain", "from 0s to 1h"}},
		{[]string{"duration: 5ms\n", ""}, []string{"own.yaml: duration: missing"}},
		{[]string{"duration: 5ms", "duration: 5"}, []string{"own.yaml:8: ", "with its unit"}},
		{[]string{"duration: 5ms", "duration: 50us", "loads: [0.2, 0.5]", "loads: [0.001]"}, []string{"traffic", "less than one flow", "lengthen duration"}},
		{[]string{"duration: 5ms", "duration: 50m"}, []string{"own.yaml:3: ", "traffic", "are the most; shorten duration"}},
		{[]string{fabric + "\n", ""}, []string{"topology", "missing; write a specification"}},
		{[]string{fabric, "topology: leaf-spine:leaves=2,spines=2,hosts=2"}, []string{"own.yaml:1: ", "topology", "h0.0.2-e0.0 has no rate"}},
		{[]string{fabric, "topology: ring:n=3"}, []string{"own.yaml:1: ", "topology", "ring"}},
		{[]string{fabric, "topology: fat-tree:k=64,hosts=33,host-rate=1,fabric-rate=1,core-rate=1"}, []string{"topology", "67584 hosts", "2 to 65536"}},
		{[]string{fabric, "topology: none.yaml"}, []string{"own.yaml:1: ", "topology", "none.yaml: there is no such file"}},
		{[]string{fabric, "topology: norates.yaml"}, []string{"topology", "has no rate"}},
		{[]string{fabric, "topology: graph.yaml", "policies: [ecmp, drb]", "policies: [drb, switch-ecmp]"}, []string{"own.yaml:2: ", "policies[1]", "want a policy of hosts"}},
		{[]string{fabric, "topology: graph.yaml", "other-racks", "other-pods"}, []string{"traffic.matrix", "a graph has not; write other-racks"}},
		{append(with("failures: [{at: 1ms, links: [a-b]}]"), fabric, "topology: graph.yaml"), []string{"own.yaml:9: ", "failures", "leave them out of the graph"}},
		{[]string{"policies: [ecmp, drb]", "policies: [ecmp, prest]"}, []string{"own.yaml:2: ", "policies[1]", "did you mean presto?"}},
		{[]string{"policies: [ecmp, drb]", "policies: [drb, drb]"}, []string{"policies[1]", "given twice"}},
		{[]string{"policies: [ecmp, drb]", "policies: []"}, []string{"policies", "missing"}},
		{[]string{"matrix: other-racks", "matrix: other-rack"}, []string{"own.yaml:4: ", "traffic.matrix", "did you mean other-racks?"}},
		{[]string{"  matrix: other-racks\n", ""}, []string{"traffic.matrix", "missing"}},
		{[]string{"other-racks", "stride"}, []string{"traffic.stride", "no multiple of the 4 hosts"}},
		{[]string{"other-racks", "staggered\n  rack: 0.7\n  pod: 0.6"}, []string{"own.yaml:6: ", "traffic.pod", "more than 1 together"}},
		{[]string{"other-racks", "staggered\n  rack: nan"}, []string{"traffic.rack", "a probability"}},
		{[]string{"other-racks", "uniform\n  stride: 2"}, []string{"traffic.stride", "for matrix stride; remove it"}},
		{[]string{"other-racks", "incast\n  servers: 2"}, []string{"traffic.sizes", "write fixed_bytes"}},
		{append(together("incast\n  servers: 4"), "{cdf: websearch_dctcp, scale: 0.01}", "{fixed_bytes: 1000}"), []string{"traffic.servers", "from 1 to 3"}},
		{append(together("incast\n  servers: 3"), "{cdf: websearch_dctcp, scale: 0.01}", "{fixed_bytes: 2}"), []string{"traffic.sizes", "a byte for each of the 3 servers"}},
		{append(together("incast\n  servers: 2\n  jobs: 5"), "{cdf: websearch_dctcp, scale: 0.01}", "{fixed_bytes: 1000}"), []string{"traffic.jobs", "from 1 to 4"}},
		{together("permutation\n  rounds: 0"), []string{"traffic.rounds", "1 or more"}},
		{together("all-to-all\n  rounds: 3"), []string{"traffic.rounds", "remove it"}},
		{together("uniform\n  at_once: 1048577"), []string{"traffic.at_once", "1 or more"}},
		{together("uniform\n  spread: 1s"), []string{"traffic.spread", "at most duration"}},
		{together("uniform\n  loads: [0.5]"), []string{"traffic.loads", "for arrivals poisson; remove it"}},
		{[]string{"arrivals: poisson", "arrivals: fast"}, []string{"own.yaml:6: ", "traffic.arrivals", "poisson, with loads, or together"}},
		{[]string{"  loads: [0.2, 0.5]\n", ""}, []string{"traffic.loads", "missing"}},
		{[]string{"[0.2, 0.5]", "[0.2, 1.5]"}, []string{"own.yaml:7: ", "traffic.loads[1]", "above 0, at most 1"}},
		{[]string{"[0.2, 0.5]", "[0.2, 0.2]"}, []string{"traffic.loads[1]", "given twice"}},
		{[]string{"cdf: websearch_dctcp", "cdf: websearch"}, []string{"own.yaml:5: ", "traffic.sizes.cdf", "websearch_dctcp"}},
		{[]string{"cdf: websearch_dctcp", "file: bad.txt"}, []string{"own.yaml:5: ", "traffic.sizes.file", "bad.txt:2: ", "no probability"}},
		{[]string{"{cdf: websearch_dctcp", "{fixed_bytes: 10, cdf: websearch_dctcp"}, []string{"traffic.sizes", "2 of cdf, file and fixed_bytes"}},
		{[]string{"scale: 0.01", "scale: 0"}, []string{"traffic.sizes.scale", "above 0"}},
		{[]string{"scale: 0.01", "truncate_bytes: -1"}, []string{"traffic.sizes.truncate_bytes", "from 1"}},
		{[]string{"other-racks", "list"}, []string{"traffic.sizes", "sizes of their own; remove it"}},
		{listOf("", "  list: []"), []string{"traffic.list", "missing; write flows such as"}},
		{listOf("  arrivals: together\n", "  list: [{from: h0.0.2, to: h0.1.2, bytes: 1}]"), []string{"traffic.arrivals", "times of their own"}},
		{listOf("", "  list: [{from: h0.0.2, to: h9.0.2, bytes: 1}]"), []string{"own.yaml:5: ", "traffic.list[0].to", "no such host; write one, from h0.0.2 to h0.1.3"}},
		{listOf("", "  list: [{from: e0.0, to: h0.1.2, bytes: 1}]"), []string{"traffic.list[0].from", "no such host"}},
		{listOf("", "  list: [{from: h0.0.2, to: h0.0.2, bytes: 1}]"), []string{"traffic.list[0].to", "is the sender"}},
		{listOf("", "  list: [{from: h0.0.2, to: h0.1.2}]"), []string{"traffic.list[0].bytes", "from 1"}},
		{listOf("", "  list: [{at: 6ms, from: h0.0.2, to: h0.1.2, bytes: 1}]"), []string{"traffic.list[0].at", "0s to duration, 5ms"}},
	} {
		text := good
		for i := 0; i < len(c.change); i += 2 {
			if !strings.Contains(text, c.change[i]) {
				t.Fatalf("%q: there is nothing to change in\n%s", c.change, text)
			}
			text = strings.ReplaceAll(text, c.change[i], c.change[i+1])
		}
		_, err := Parse([]byte(text), name)
		if err == nil {
			t.Errorf("%q is taken", c.change)
			continue
		}
		var key config.KeyError
		if !errors.As(err, &key) || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%q: %v: is no usage error of a key", c.change, err)
		}
		for _, s := range append(c.says, dir) {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q: %v; want it to say %q", c.change, err, s)
			}
		}
	}
}

// listOf changes good's traffic into matrix list.
func listOf(before, flows string) []string {
	i, j := strings.Index(good, "  matrix:"), strings.Index(good, "duration:")
	return []string{good[i:j], "  matrix: list\n" + before + flows + "\n"}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const graphText = `nodes:
  spine1: {tier: 2, addresses: [172.16.0.1]}
  spine2: {tier: 2, addresses: [172.16.0.2]}
  leaf1: {tier: 1, prefixes: [192.168.1.0/26]}
  leaf2: {tier: 1, prefixes: [192.168.2.0/26]}
  h1: {addresses: [192.168.1.2]}
  h2: {addresses: [192.168.1.3]}
  h3: {addresses: [192.168.2.2]}
links:
  - {ends: [h1, leaf1], rate: 100}
  - {ends: [h2, leaf1], rate: 100}
  - {ends: [h3, leaf2], rate: 100}
  - {ends: [leaf1, spine1], rate: 100}
  - {ends: [leaf1, spine2], rate: 100}
  - {ends: [leaf2, spine1], rate: 100}
  - {ends: [leaf2, spine2], rate: 100}
`

// FuzzParse: what is taken can be run, and errors are usage errors that name the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(strings.NewReplacer("other-racks", "stride\n  stride: 1", "poisson\n  loads: [0.2, 0.5]", "together\n  rounds: 2\n  spread: 1ms", "cdf: websearch_dctcp", "fixed_bytes: 30000").Replace(good)))
	f.Add([]byte(strings.NewReplacer("other-racks", "incast\n  servers: 3", "cdf: websearch_dctcp", "fixed_bytes: 30000").Replace(good) + "failures: [{at: 1ms, links: [e0.0-a0.0], told: 1ms}, {at: 3ms, links: [e0.0-a0.0], up: true}]\n"))
	f.Add([]byte(strings.NewReplacer(listOf("", "  list: [{at: 1ms, from: h0.0.2, to: h0.1.3, bytes: 5000}]")...).Replace(good)))
	f.Add([]byte("topology: [\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if strings.Contains(string(text), ".y") || strings.Contains(string(text), "file") {
			return // of the machine
		}
		file, err := parse(text, "own.yaml", 64)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "own.yaml") || exitcode.Of(err) != exitcode.Usage {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		bytes := 0.0 // about what a run sends
		for _, load := range file.loads() {
			if file.plan.sizes != nil {
				bytes = max(bytes, file.plan.expected(load)*file.plan.sizes.Mean())
			}
		}
		for _, flow := range file.plan.list {
			bytes += float64(flow.Bytes)
		}
		if bytes > 1e7 || len(file.loads())*len(file.Policies)*file.Seeds > 4 || file.Duration+file.Drain > 2e9 {
			return // too long
		}
		results, err := file.Run(t.Context(), 1, nil)
		if err != nil && exitcode.Of(err) != exitcode.Usage || err == nil && len(results) != len(file.Policies)*len(file.loads()) {
			t.Errorf("%q: %d results, %v", text, len(results), err)
		}
	})
}
