package world

import (
	"testing"
	"time"

	"weft/topology"
)

func TestTrace_tellsEverythingApart(t *testing.T) {
	type record struct {
		at   time.Duration
		host topology.NodeID
		kind kind
		data string
	}
	base := []record{{1, 2, injected, "eight or more bytes"}, {3, 4, delivered, "short"}}
	seen := map[uint64]string{}
	for name, change := range map[string]func([]record){
		"nothing":        func([]record) {},
		"time":           func(r []record) { r[0].at++ },
		"host":           func(r []record) { r[1].host++ },
		"kind":           func(r []record) { r[1].kind = injected },
		"a word":         func(r []record) { r[0].data = "Eight or more bytes" },
		"the last bytes": func(r []record) { r[0].data = "eight or more byteS" },
		"length":         func(r []record) { r[1].data += "\x00" },
		"order":          func(r []record) { r[0], r[1] = r[1], r[0] },
	} {
		records := append([]record(nil), base...)
		change(records)
		var tr trace
		for _, r := range records {
			tr.add(r.at, r.host, r.kind, []byte(r.data))
		}
		if other, ok := seen[tr.sum]; ok {
			t.Errorf("%s changed, and %s changed: the same trace", name, other)
		}
		seen[tr.sum] = name
	}
}
