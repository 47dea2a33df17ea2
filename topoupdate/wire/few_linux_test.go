package wire

import (
	"io"
	"testing"

	"weft/internal/shortage/few"
)

func TestFewDescriptors_errorsNameTheLimit(t *testing.T) {
	few.Descriptors(t, func() (io.Closer, error) { return Open(Config{Interfaces: []string{"lo"}}) })
}
