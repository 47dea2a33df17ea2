package pacing

import (
	"testing"

	"weft/internal/kernel/kerneltest"
	"weft/lab"
)

func TestMain(m *testing.M) {
	kerneltest.Main(m, func(name string) error {
		_, err := lab.Down(name)
		return err
	})
}
