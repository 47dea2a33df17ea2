// Package metrics exports a Host's counters to Prometheus:
//
//	reg := prometheus.NewRegistry()
//	reg.MustRegister(metrics.NewCollector(host))
//	http.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
//
// It is a package of its own, so that programs which do not use it do not link Prometheus'
// client and what that needs: Go links what is imported.
//
// A program with several Hosts tells them apart by a label:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"host": "a"}, reg).MustRegister(metrics.NewCollector(a))
//
// weft host and weft switch export metrics of the same names, where they count the same.
package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"weft/internal/metrics"
	"weft/stack"
)

// NewCollector returns a collector of a Host's metrics. It reads the Host at each scrape, takes
// no memory between scrapes, and is safe for concurrent use. After Host.Close it tells the last
// counters. Their number is bounded: 128 bouncing switches and 20 racks have series of their
// own, all others are summed.
func NewCollector(h *stack.Host) prometheus.Collector {
	return metrics.Collector(func(w metrics.Writer) { write(w, h) })
}

func write(w metrics.Writer, h *stack.Host) {
	s := h.Stats()
	w.Egress(s.Egress)
	w.Ingress(s.Ingress)
	w.Tunnel(s.Tunnel)
	w.Resequencer("tcp", s.Resequencer)
	w.TCP(s.TCP.SegmentsSent, s.TCP.SegmentsReceived, s.TCP.Retransmits, s.TCP.Timeouts, s.TCP.FastRecovery)
	w.Evidence(s.Liveness.Evidence)
	w.Probes(s.Liveness.ProbeStats, s.Liveness.IPv6)
	sent := make([]metrics.Sent, 0, len(s.Paths))
	for _, p := range s.Paths {
		sent = append(sent, metrics.Sent{Via: p.Bounce, Packets: p.Packets, Bytes: p.Bytes})
	}
	w.Sent(sent)
	paths, _ := h.Paths()
	// The Host does not know what its uplinks are called.
	several := false
	for _, p := range paths {
		several = several || p.From > 0
	}
	w.Paths(paths, func(from int) string {
		if !several {
			return ""
		}
		return strconv.Itoa(from)
	})
	w.Carriage(h.Carriage(), h.Carriage6())
}
