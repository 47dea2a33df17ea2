package socket

import (
	"testing"

	"weft/internal/kernel/kerneltest"
)

func TestMain(m *testing.M) { kerneltest.Main(m, nil) }
