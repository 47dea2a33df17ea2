package hostprog

import (
	"testing"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
)

func TestMain(m *testing.M) {
	kerneltest.Main(m, func(lab string) error {
		_, err := fabric.Down(lab)
		return err
	})
}
