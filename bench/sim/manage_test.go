package sim

import (
	"reflect"
	"testing"
	"time"

	"weft/bench/sim/aqm"
	"weft/bench/sim/workload"
	"weft/topology"
)

// twoRacks has three hosts send to one of the other rack as fast as they can.
func twoRacks(t *testing.T) Config {
	t.Helper()
	c := drbSetting(parse(t, "leaf-spine:leaves=2,spines=1,hosts=3,host-rate=1000,fabric-rate=10000"), "ecmp")
	c.Resequencer = nil
	c.Duration = 60 * time.Millisecond
	c.Queues = []Queue{{RateMbit: 1000, Bytes: 128 << 10}, {Bytes: 1 << 20}}
	l := new(list)
	for h := range topology.NodeID(3) {
		l.flows = append(l.flows, workload.Flow{Src: h, Dst: 3})
	}
	c.Workload = l
	return c
}

// sees counts what comes to ports, and compares its own queue with the port's.
type sees struct {
	aqm.VirtualQueue
	packets, apart int
	verdict        aqm.Verdict
}

func (s *sees) Arrive(a aqm.Arrival) aqm.Verdict {
	found, _ := s.Put(a.Now, a.Bytes)
	if d := found - float64(a.Queue); d > 2 || d < -2 {
		s.apart++
	}
	s.packets++
	return s.verdict
}

// The virtual queue of a discipline that has the port's rate and room is as long as the
// port's own, and one that passes all changes nothing.
func TestManage_seesWhatThePortSees(t *testing.T) {
	plain, err := Run(twoRacks(t))
	if err != nil {
		t.Fatal(err)
	}
	c := twoRacks(t)
	var all []*sees
	c.Queues[0].Manage = func(port, place int) aqm.Discipline {
		if place != EdgeDown {
			return nil
		}
		d := &sees{VirtualQueue: aqm.VirtualQueue{RateMbit: 1000, Room: c.Queues[0].Bytes}}
		all = append(all, d)
		return d
	}
	watched, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(plain.Places, watched.Places) || !reflect.DeepEqual(plain.DeliveredBytes, watched.DeliveredBytes) {
		t.Error("a discipline that passes all changes the run")
	}
	packets, apart := 0, 0
	for _, d := range all {
		packets, apart = packets+d.packets, apart+d.apart
	}
	if len(all) != 6 || packets < 4000 || apart > 0 {
		t.Errorf("%d ports, %d packets, %d of them find other queues", len(all), packets, apart)
	}
}

// A discipline's verdicts are carried out and counted.
func TestManage_verdicts(t *testing.T) {
	for _, verdict := range []aqm.Verdict{aqm.Mark, aqm.Drop} {
		c := twoRacks(t)
		c.TCP.DCTCP = true
		c.Queues[0].Manage = func(port, place int) aqm.Discipline {
			if place != EdgeDown {
				return nil
			}
			return &sees{VirtualQueue: aqm.VirtualQueue{RateMbit: 1000}, verdict: verdict}
		}
		r, err := Run(c)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Places[EdgeDown]
		if verdict == aqm.Mark && (p.Marks != p.Packets || p.Packets < 1000) || verdict == aqm.Drop && (p.Packets > 0 || p.Drops == 0) {
			t.Errorf("verdict %v: %d packets, %d marks, %d drops", verdict, p.Packets, p.Marks, p.Drops)
		}
	}
}
