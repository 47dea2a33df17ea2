package fabric

import (
	"math"
	"strings"
	"testing"
	"time"

	"weft/internal/qcn"
)

// enterQCN is enter of a port with QCN. It returns the level that the packet's sender is to be
// told of, 0 if it is not. sampled says whether such packets are at all.
func (s *meterState) enterQCN(now, wire, segments uint64, sampled bool) (level uint32) {
	s.drain(now)
	level = s.QCN.Arrive(s.queued())
	if level > 0 && !(sampled && s.QCN.Sample(level, segments)) {
		level = 0
	}
	s.fill(now, wire, segments)
	return level
}

func TestQCN_errors(t *testing.T) {
	length := func(bytes int) QueueLength { return QueueLength{Bytes: bytes} }
	for want, q := range map[string]QCN{
		"QCN.Target is 80000 bytes, must be at most the queue's 75000": {Target: length(80_000)},
		"QCN.Target is 0, must be more":                                {Weight: 1},
		"QCN.Target is -1":                                             {Target: length(-1)},
		"QCN.Target is both":                                           {Target: QueueLength{5, time.Second}},
		"QCN.Weight is -1":                                             {Target: length(5), Weight: -1},
		"QCN.Weight is 17":                                             {Target: length(5), Weight: 17},
		"QCN.Weight is NaN":                                            {Target: length(5), Weight: math.NaN()},
		"QCN.MinP is 2":                                                {Target: length(5), MinP: 2},
		"QCN.MaxP is 0.005":                                            {Target: length(5), MaxP: 0.005},
		"QCN.Plateau is 64":                                            {Target: length(5), Plateau: 64},
	} {
		p := MeterPort{Name: "p0", RateBits: 20e6, QueueBytes: 75_000, QCN: q}
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	p := mustMeterState(t, MeterPort{Name: "p0", RateBits: 20e6, QueueBytes: 75_000, QCN: QCN{Target: QueueLength{Time: 6 * time.Millisecond}, Seed: 3}})
	if want := qcn.NewCongestion(qcn.Parameters{Target: 15_000, Weight: 1, MinP: 0.01, MaxP: 0.2, Plateau: 32, Seed: 3}); p.QCN != want {
		t.Errorf("%+v, want %+v", p.QCN, want)
	}
}
