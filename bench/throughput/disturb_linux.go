package throughput

import (
	"errors"
	"fmt"
	"math"

	"weft/internal/kernel/disturb"
)

// disturbSpines makes the spines lose packets on the way to the receiver, and the first one late.
func (b *bench) disturbSpines() error {
	for i, s := range b.spines {
		var d disturb.Disturbance
		if b.options.Loss > 0 {
			d.Loss = int(math.Round(1 / b.options.Loss))
		}
		if i == 0 {
			d.Skew = b.options.Skew
		}
		if d == (disturb.Disturbance{}) {
			continue
		}
		err := b.lab.Do(s.node, func() error {
			o, err := disturb.Attach(s.port, d)
			if err == nil {
				b.disturbed = append(b.disturbed, o)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", b.topology.Node(s.node).Name, err)
		}
	}
	return nil
}

// undisturb frees what disturbSpines has made; the lab is to go as well.
func (b *bench) undisturb() (err error) {
	for _, o := range b.disturbed {
		err = errors.Join(err, o.Close())
	}
	b.disturbed = nil
	return err
}
