package simfile

import (
	"fmt"
	"time"

	"weft/internal/config"
	"weft/topology"
	"weft/topology/graph"
)

// streamsFile is what a file of Streams has: the words of traffic that say who sends to whom.
type streamsFile struct {
	Traffic struct {
		Matrix  string  `yaml:"matrix"`
		Stride  int     `yaml:"stride"`
		Rack    float64 `yaml:"rack"`
		Pod     float64 `yaml:"pod"`
		Servers int     `yaml:"servers"`
		Jobs    int     `yaml:"jobs"`
		AtOnce  int     `yaml:"at_once"`
		List    []struct {
			From string `yaml:"from"`
			To   string `yaml:"to"`
		} `yaml:"list"`
	} `yaml:"traffic"`
}

// Streams says between which hosts of a fabric streams without end are, by the words that a File
// has for its traffic.
type Streams struct{ file *File }

// Pair are a sender and a receiver.
type Pair struct{ From, To topology.NodeID }

// maxStreams bounds them.
const maxStreams = 4096

// ReadStreams reads a file of that name, for a fabric. Its errors name the line, the key and what
// to write instead.
func ReadStreams(name string, t *topology.Topology) (*Streams, error) {
	return readStreams(name, fabric{computed: t})
}

// ReadStreamsOf is ReadStreams for a graph.
func ReadStreamsOf(name string, g *graph.Graph) (*Streams, error) {
	return readStreams(name, fabric{graph: g})
}

func readStreams(name string, of fabric) (*Streams, error) {
	text, err := config.ReadInput(name, config.MaxBytes)
	if err != nil {
		return nil, err
	}
	return parseStreams(text, name, of)
}

func parseStreams(text []byte, name string, of fabric) (*Streams, error) {
	var words streamsFile
	words.Traffic.Jobs, words.Traffic.AtOnce = 1, 1
	lines, err := config.Decode(text, name, &words)
	if err != nil {
		return nil, err
	}
	f := &File{file: defaults(), maxHosts: maxHosts, lines: lines}
	f.plan.fabric, f.plan.length, f.Duration = of, time.Second, time.Second
	w := &f.Traffic
	w.Matrix, w.Stride, w.Rack, w.Pod = words.Traffic.Matrix, words.Traffic.Stride, words.Traffic.Rack, words.Traffic.Pod
	w.Servers, w.Jobs, w.AtOnce = words.Traffic.Servers, words.Traffic.Jobs, words.Traffic.AtOnce
	for _, l := range words.Traffic.List {
		w.List = append(w.List, listed{From: l.From, To: l.To, Bytes: 1})
	}
	switch w.Matrix {
	case list:
	case allToAll:
		w.Arrivals, w.AtOnce = together, max(of.hosts()-1, 1)
	default:
		w.Arrivals = together
	}
	if w.Matrix != list {
		w.Sizes.Fixed = max(w.Servers, 1) // a size has no effect, but jobs of incast need one
	}
	f.plan.traffic = *w
	for _, check := range []func(string) error{f.readSizes, f.checkMatrix, f.checkArrivals, f.checkUnused, f.readList} {
		if err := check(""); err != nil {
			return nil, err
		}
	}
	if n := f.plan.expected(0); n > maxStreams {
		return nil, f.wrong("traffic", "%.0f streams; write a matrix with at most %d", n, maxStreams)
	}
	s := &Streams{f}
	if _, err := s.Pairs(0); err != nil {
		return nil, f.wrong("traffic.matrix", "%s", withoutPackage(err))
	}
	return s, nil
}

// Matrix is the file's word for who sends to whom.
func (s *Streams) Matrix() string { return s.file.Traffic.Matrix }

// Pairs are the streams, which depend on the seed alone.
func (s *Streams) Pairs(seed uint64) (pairs []Pair, err error) {
	source, err := s.file.plan.source(0, seed)
	if err != nil {
		return nil, err
	}
	for {
		flow, ok := source.Next()
		if !ok {
			break
		}
		pairs = append(pairs, Pair{flow.Src, flow.Dst})
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("nobody sends")
	}
	return pairs, nil
}
