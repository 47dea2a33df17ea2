package prober

import (
	"testing"

	"weft/internal/kernel/kerneltest"
	"weft/lab"
)

func TestMain(m *testing.M) {
	kerneltest.Main(m, func(l string) error {
		_, err := lab.Down(l)
		return err
	})
}
