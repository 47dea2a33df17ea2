package conga

import (
	"testing"
	"time"
)

func TestMark_layout(t *testing.T) {
	for _, c := range []struct {
		mark Mark
		id   uint16
	}{
		{Mark{}, 0x0001},
		{Mark{Tag: 1}, 0x0801},
		{Mark{Tag: 15, Metric: 7}, 0x7f01},
		{Mark{Metric: 5}, 0x0501},
		{Mark{Feedback: true}, 0x8001},
		{Mark{Feedback: true, Tag: 10, Metric: 3}, 0xd301},
		{Mark{Feedback: true, Tag: 15, Metric: 7}, 0xff01},
		{Mark{Tick: 1}, 0x0003},
		{Mark{Tick: 15}, 0x001f},
		{Mark{Tick: 16}, 0x0041},
		{Mark{Feedback: true, Tag: 15, Metric: 7, Tick: 63}, 0xffdf},
	} {
		if got := c.mark.Put(); got != c.id {
			t.Errorf("%+v is %04x, want %04x", c.mark, got, c.id)
		}
		if got := ParseMark(c.id); got != c.mark {
			t.Errorf("%04x is %+v, want %+v", c.id, got, c.mark)
		}
	}
	if got := (Mark{Tag: 16 + 3, Metric: 8 + 2, Tick: 64}).Put(); got != (Mark{Tag: 3, Metric: 2}).Put() {
		t.Errorf("what is out of range spills over: %04x", got)
	}
}

// A kernel that cuts a super-segment adds 1 to the ID for each segment.
func TestMark_survivesSegmentation(t *testing.T) {
	for tag := range uint8(Tags) {
		for metric := range uint8(MaxMetric + 1) {
			for _, feedback := range []bool{false, true} {
				m := Mark{Feedback: feedback, Tag: tag, Metric: metric}
				for segment := range uint16(62) {
					id := m.Put() + segment
					got := ParseMark(id)
					if got.Tick = 0; got != m {
						t.Fatalf("%+v, segment %d: %+v", m, segment, got)
					}
					// Nobody takes it for the beginning of a flowcell, or for one
					// who counts packets.
					if index := id & 63; index == 0 || index == 63 {
						t.Fatalf("%+v, segment %d has index %d", m, segment, index)
					}
				}
			}
		}
	}
}

// Whatever the tick, nobody takes a mark for the number of a flowcell; and what
// is sent later is ahead, up to half of all ticks.
func TestMark_tick(t *testing.T) {
	table := newTable(t, Config{Tau: 100 * time.Microsecond, Age: time.Second})
	at := func(now time.Duration) Mark { return ParseMark(Mark{Tag: 15, Tick: table.Tick(now)}.Put()) }
	for i := range time.Duration(200) {
		now := i * 50 * time.Microsecond
		m := at(now)
		if index := m.Put() & 63; index == 0 || index == 63 || m.Order()&63 == 0 || m.Order()&63 == 63 {
			t.Fatalf("at %v: %+v, %04x, %04x", now, m, m.Put(), m.Order())
		}
		if at(now+49*time.Microsecond) != m {
			t.Errorf("half a tau after %v has two ticks", now)
		}
		for d := range time.Duration(32) {
			later := at(now + d*50*time.Microsecond)
			if ahead := int16(later.Order() - m.Order()); (ahead > 0) != (d > 0) {
				t.Fatalf("%v after %v is %d ahead", d*50*time.Microsecond, now, ahead)
			}
		}
	}
}

func TestRaise_forwardMarksOnlyAndUpOnly(t *testing.T) {
	for id := range 1 << 16 {
		id := uint16(id)
		for metric := range uint8(10) {
			want := ParseMark(id)
			if !want.Feedback {
				want.Metric = max(want.Metric, min(metric, MaxMetric))
			}
			got := Raise(id, metric)
			if ParseMark(got) != want || got&^0x0700 != id&^0x0700 {
				t.Fatalf("%04x raised to %d is %04x", id, metric, got)
			}
		}
	}
}

func FuzzParseMark(f *testing.F) {
	for _, id := range []uint16{0, 1, 0x7f01, 0x8001, 0xffff, 0x00c0} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id uint16) {
		m := ParseMark(id)
		if m.Tag >= Tags || m.Metric > MaxMetric {
			t.Fatalf("%04x is %+v", id, m)
		}
		if put := m.Put(); put>>8 != id>>8 || ParseMark(put) != m {
			t.Fatalf("%04x is %+v, and that is %04x", id, m, put)
		}
	})
}

func TestTag_isThePathWhereThereIsRoom(t *testing.T) {
	for _, c := range []struct {
		path, paths, first int
		tag                uint8
	}{
		{0, 4, 0, 0}, {3, 4, 1, 3}, {15, 16, 3, 15}, // k=8: 16 paths
		{16, 25, 3, 3}, {575, 576, 23, 7}, // k=10, k=48
	} {
		if got := Tag(c.path, c.paths, c.first); got != c.tag {
			t.Errorf("path %d of %d by %d has tag %d, want %d", c.path, c.paths, c.first, got, c.tag)
		}
	}
}
