package kerneltest

import (
	"io"
	"testing"

	"weft/internal/kernel"
	"weft/internal/shortage/few"
)

// FewDescriptors is few.Descriptors of what opens something at device p0 of a namespace.
func FewDescriptors(t *testing.T, open func() (io.Closer, error)) {
	ns := Namespace(t, "few")
	EthernetPair(t, ns, "p0", "p1")
	few.Descriptors(t, func() (opened io.Closer, err error) {
		err = kernel.InNamespace(ns, func() error {
			opened, err = open()
			return err
		})
		return opened, err
	})
}
