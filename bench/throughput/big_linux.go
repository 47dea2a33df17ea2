package throughput

import "weft/internal/kernel"

// bigBytes is how long super-segments of the big cases may be.
const bigBytes = 196608

// kernelBig is kernelTCP with super-segments of more than 64 KB (BIG TCP).
var kernelBig = big(way{open: func(s site) (*host, error) {
	was, err := kernel.SetSupers(uplinkName, bigBytes)
	if err != nil {
		return nil, err
	}
	h, err := kernelTCP.open(s)
	if err != nil {
		return nil, err
	}
	h.close = func() error {
		_, err := kernel.SetSupers(uplinkName, was)
		return err
	}
	return h, nil
}})

// big is a way that sends such super-segments, which no other case does. The switches pass
// them whole.
func big(w way) way {
	w.prepare = func(b *bench) error { return b.lab.AllowSupers(bigBytes) }
	return w
}
