package daemon

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/probe"
	"weft/luopan"
	"weft/stack"
	"weft/topology"
)

// What a Sampler knows by numbers is told by names, in every kind of fabric: of each
// path whether it is live, and what its sample says; of racks that the fabric does
// not have, nothing.
func TestRacksOf_names(t *testing.T) {
	for spec, rack := range map[string]string{
		"fat-tree:k=4": "e3.1", "leaf-spine:leaves=3,spines=2,hosts=2": "e0.2", "vl2:d0=2,d1=4,d2=4,hosts=2": "e0.3",
	} {
		top, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		edge, err := top.Lookup(rack)
		if err != nil {
			t.Fatal(err)
		}
		prefix := top.RackOf(edge.ID)
		host := top.FirstHost(edge.ID)
		paths := top.Paths(0, host)
		without := top.Without(paths.Path(1).Links[1]) // of what is up from the sender's rack
		got := racksOf(without, 0, []luopan.Destination{
			{Destination: uint32(host)},
			{Destination: uint32(edge.ID) + 100},
			{Destination: 1<<32 - 1},
			{Destination: uint32(edge.ID), Metric: luopan.QueueBytes, RTT: time.Millisecond, Samples: []luopan.Sample{
				{Path: 0, Queue: 3, Meters: 3, Age: time.Second}, {Path: 1, Marked: true},
			}},
		})
		if len(got) != 1 || got[0].Rack != rack || got[0].Prefix != prefix || got[0].Metric != "queue" || len(got[0].Paths) != paths.Count() {
			t.Errorf("%s: %+v", spec, got)
			continue
		}
		live := without.PathsOrAll(0, host).Live
		for i, p := range got[0].Paths {
			want := stack.PathCongestion{Path: i, Bounce: paths.Addr(i), Live: slices.Contains(live, i)}
			switch i {
			case 0:
				want.Known, want.Best, want.Queue, want.Meters, want.Age = true, true, 3, 3, time.Second
			case 1:
				want.Known, want.Marked = true, true
			}
			if p != want || !p.Bounce.IsValid() {
				t.Errorf("%s: %+v, want %+v", spec, p, want)
			}
		}
		if got[0].Paths[1].Live {
			t.Errorf("%s: the path over a dead link is live", spec)
		}
		if none := racksOf(top, 0, []luopan.Destination{{Destination: uint32(edge.ID)}}); none[0].Metric != "" {
			t.Errorf("%s: nothing is known, but the metric is %s", spec, none[0].Metric)
		}
	}
}

// counted is a sampler with counters.
type counted struct {
	fakeSampler
	stats probe.SampleStats
}

func (c *counted) Stats() probe.SampleStats { return c.stats }

// The status shows every counter of samples, each apart.
func TestSampleStatus_showsEveryCounter(t *testing.T) {
	var c counted
	v := reflect.ValueOf(&c.stats).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Uint64 {
			f.SetUint(1000 + uint64(i))
		}
	}
	c.stats.Table.Rounds = 999
	for _, samples := range []bool{false, true} {
		d := &daemon{}
		d.sampler, d.config = &c, &Config{Mode: ModeGateway, Encapsulation: []string{EncapIPIP}, Policy: "drb"}
		if samples {
			d.config.Policy = "luopan"
		}
		shown, err := json.Marshal(d.sampleStatus())
		if err != nil {
			t.Fatal(err)
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Uint64 && strings.Count(string(shown), fmt.Sprint(f.Uint())) != 1 {
				t.Errorf("%s is not shown, or not apart: %s", v.Type().Field(i).Name, shown)
			}
		}
		if strings.Contains(string(shown), "999") != samples {
			t.Errorf("samples %t: %s", samples, shown)
		}
	}
}
