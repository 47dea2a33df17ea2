//go:build !linux

package failover

import (
	"context"
	"errors"
	"io"
	"time"

	"weft/internal/exitcode"
)

var errNotLinux = exitcode.AsAbsent(errors.New("network namespaces exist on Linux only; run it there or in a virtual machine"))

// Run returns an error: network namespaces are Linux's.
func Run(context.Context, Options) ([]Result, error) { return nil, errNotLinux }

// Figure12 returns an error: network namespaces are Linux's.
func Figure12(context.Context, Options) (Degradation, error) { return Degradation{}, errNotLinux }

// Soak returns an error: network namespaces are Linux's.
func Soak(context.Context, SoakOptions) (SoakResult, error) { return SoakResult{}, errNotLinux }

// RunAgents returns an error: network namespaces are Linux's.
func RunAgents(context.Context, string, time.Duration, bool, io.Reader, io.Writer) error {
	return errNotLinux
}
