package kerneltest

import (
	"testing"

	"weft/internal/kernel/disturb"
)

// Disturb disturbs what leaves by a device of a namespace, until the test ends.
func Disturb(t testing.TB, in func(func() error) error, device string, d disturb.Disturbance) (o *disturb.Disturber) {
	t.Helper()
	if err := in(func() (err error) { o, err = disturb.Attach(device, d); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}
