package throughput

import (
	"math"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestSummarise_mediansOfRounds(t *testing.T) {
	rounds := []sample{
		{gbps: 4, cores: 2, processCores: 1, mallocs: 3, idle: 10, shares: []float64{1, 0}},
		{gbps: 8, cores: 2, processCores: 1, mallocs: 1, idle: 30, shares: []float64{0.5, 0.5}},
		{gbps: 6, cores: 1, processCores: 0.5, mallocs: 2, idle: 20, shares: []float64{0.25, 0.75}},
	}
	kernel := []sample{{gbps: 8, cores: 2}, {gbps: 8, cores: 2}, {gbps: 8, cores: 1}}
	r := summarise("x", "kernel cubic", rounds, kernel)
	if r.Case != "x" || r.TCP != "kernel cubic" || r.Rounds != 3 || r.Gbps != 6 || r.Min != 4 || r.Max != 8 {
		t.Errorf("%+v", r)
	}
	if r.GbpsPerCore != 4 || r.GbpsPerCoreMin != 2 || r.GbpsPerCoreMax != 6 {
		t.Errorf("per core %v, %v to %v", r.GbpsPerCore, r.GbpsPerCoreMin, r.GbpsPerCoreMax)
	}
	// 2 cores at 4 Gbit/s, which is half a GB a second, are 4 s a GB; then 2 and 4/3.
	if r.CPUPerGB != 2 || r.ProcessCPUPerGB != 1 || r.AllocsPerMB != 2 || r.Idle != 20 {
		t.Errorf("%+v", r)
	}
	// 2/4, 4/4, 6/8: each against its own round.
	if r.OfKernel != 0.75 {
		t.Errorf("of kernel: %v", r.OfKernel)
	}
	if r.PathShares[0] != 0.5 || r.PathShares[1] != 0.5 {
		t.Errorf("shares %v", r.PathShares)
	}
}

func TestSummarise_nothingMovedIsZeroNotNaN(t *testing.T) {
	r := summarise("x", "", []sample{{shares: []float64{0}}}, nil)
	for _, v := range []float64{r.Gbps, r.GbpsPerCore, r.CPUPerGB, r.OfKernel, r.PathShares[0]} {
		if v != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestVerify_whatTheStreamHas(t *testing.T) {
	for n := int64(0); n < 3*period; n += 7919 {
		for _, size := range []int{1, probe, 1000, chunk} {
			b := append([]byte(nil), at(n)[:size]...)
			if err := verify(n, b); err != nil {
				t.Fatal(err)
			}
			b[size-1] ^= 1
			if verify(n, b) == nil {
				t.Fatalf("a bit is wrong at the end of %d bytes behind %d, and it is not noticed", size, n)
			}
		}
	}
	// Each place of the stream continues the one before.
	if string(at(5)[period-5:][:10]) != string(at(0)[:10]) {
		t.Error("the period does not repeat")
	}
}

// Segments and super-segments that are lost, repeated or exchanged shift the
// stream by these.
func TestVerify_shifted(t *testing.T) {
	for _, size := range []int64{1, 536, 1380, 1420, 1428, 1440, 1448, 1460, 4096, 64 << 10, 65160, 65535} {
		for k := int64(1); k <= 64; k++ {
			if verify(1e6, at(1e6 + k*size)[:chunk]) == nil {
				t.Errorf("%d times %d bytes are missing, and it is not noticed", k, size)
			}
		}
	}
}
