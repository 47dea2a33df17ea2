package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// The range of k in fat-tree:k=K. At 64, addresses still fit in the octets
// (pods 0 to 63, the cores' 64) and a pair has 1,024 paths.
const (
	MinFatTreeK = 2
	MaxFatTreeK = 64
)

// Parse reads a specification such as "fat-tree:k=4".
func Parse(spec string) (*Topology, error) {
	kind, args, _ := strings.Cut(spec, ":")
	switch kind {
	case "fat-tree":
		k, err := intArg(args, "k")
		if err != nil {
			return nil, fmt.Errorf("topology %q: %w; write fat-tree:k=4", spec, err)
		}
		return FatTree(k)
	}
	return nil, fmt.Errorf("topology %q: unknown kind %q; known: fat-tree:k=K", spec, kind)
}

// intArg reads args that hold exactly one key=integer.
func intArg(args, key string) (int, error) {
	got := ""
	for _, arg := range strings.Split(args, ",") {
		name, value, _ := strings.Cut(arg, "=")
		if name != key {
			return 0, fmt.Errorf("unknown parameter %q, wanted %s", name, key)
		}
		if got != "" {
			return 0, fmt.Errorf("parameter %s given twice", key)
		}
		if got = value; got == "" {
			return 0, fmt.Errorf("parameter %s has no value", key)
		}
	}
	n, err := strconv.Atoi(got)
	if err != nil {
		return 0, fmt.Errorf("%s=%s: not a whole number", key, got)
	}
	return n, nil
}

// FatTree returns the k-ary fat-tree of k³/4 hosts (thesis §3.1): k pods of
// k/2 edge and k/2 aggregation switches, (k/2)² cores. k is even, MinFatTreeK
// to MaxFatTreeK. Core 3.r hangs on the aggregation switches r div k/2 of all
// pods (DRB Fig. 1a).
func FatTree(k int) (*Topology, error) {
	if k < MinFatTreeK || k > MaxFatTreeK || k%2 != 0 {
		return nil, fmt.Errorf("fat-tree: k=%d, must be even and from %d to %d", k, MinFatTreeK, MaxFatTreeK)
	}
	h := k / 2
	return &Topology{
		spec:  fmt.Sprintf("fat-tree:k=%d", k),
		shape: shape{pods: k, edges: h, aggs: h, hosts: h, cores: h},
	}, nil
}
