// Package metrics states every metric that weft exports, and fills them from the counters that
// its parts keep anyway. It is the only list of names: a Host's collector (package stack/metrics)
// and the daemons' take theirs from here, so that the same thing has the same name everywhere.
//
// Names follow Prometheus' conventions: base units (seconds, bytes), _total for counters. How
// many series there are is bounded: MaxPaths bouncing switches and MaxRacks racks have series of
// their own; what is above is summed as OtherLabel. Nothing is counted for a scrape: to collect
// is to copy.
package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weft/internal/histogram"
)

const (
	// MaxPaths is how many ways up, by uplink and bouncing switch, have series of their own.
	MaxPaths = 128
	// MaxRacks is how many racks have: those with most paths that are not up.
	MaxRacks = 20
	// OtherLabel is the value of the label that stands for all others.
	OtherLabel = "other"
)

// family is a metric with all values of its labels.
type family struct {
	name string
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// families are all that exist.
var families []*family

func declare(kind prometheus.ValueType, name, help string, labels ...string) *family {
	f := &family{name, prometheus.NewDesc(name, help, labels, nil), kind}
	families = append(families, f)
	return f
}

func counter(name, help string, labels ...string) *family {
	return declare(prometheus.CounterValue, name, help, labels...)
}

func gauge(name, help string, labels ...string) *family {
	return declare(prometheus.GaugeValue, name, help, labels...)
}

// Names lists the names of all metrics that weft may export. Of a histogram it is the name
// without suffix.
func Names() (names []string) {
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// Writer takes the metrics of one scrape.
type Writer struct{ to chan<- prometheus.Metric }

// Collector returns a collector that has fill write the metrics. Scrapes may be concurrent: fill
// must allow that.
func Collector(fill func(Writer)) prometheus.Collector { return collector(fill) }

type collector func(Writer)

// Describe describes all metrics, of which there may be fewer.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range families {
		to <- f.desc
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) { c(Writer{to}) }

// put writes a value. What labels say may come from the network: it is made valid.
func (w Writer) put(f *family, value float64, labels ...string) {
	m, err := prometheus.NewConstMetric(f.desc, f.kind, value, valid(labels)...)
	w.send(f, m, err)
}

func (w Writer) count(f *family, n uint64, labels ...string) { w.put(f, float64(n), labels...) }

func (w Writer) truth(f *family, is bool, labels ...string) {
	v := 0.0
	if is {
		v = 1
	}
	w.put(f, v, labels...)
}

func (w Writer) seconds(f *family, d time.Duration, labels ...string) {
	w.put(f, d.Seconds(), labels...)
}

func (w Writer) histogram(f *family, h *histogram.Histogram, labels ...string) {
	buckets, sum := make(map[float64]uint64, histogram.Buckets), uint64(0)
	for i := range histogram.Buckets {
		sum += h.Counts[i]
		buckets[histogram.Bound(i).Seconds()] = sum
	}
	m, err := prometheus.NewConstHistogram(f.desc, h.Count(), h.Sum.Seconds(), buckets, valid(labels)...)
	w.send(f, m, err)
}

func (w Writer) send(f *family, m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(f.desc, err)
	}
	w.to <- m
}

func valid(labels []string) []string {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "?")
	}
	return labels
}

// cause is one value of a label "cause" or the like, and what it counts.
type cause struct {
	name string
	n    uint64
}

func (w Writer) causes(f *family, all ...cause) {
	for _, c := range all {
		w.count(f, c.n, c.name)
	}
}
