//go:build !linux

package testbed

import (
	"context"
	"errors"

	"weft/internal/exitcode"
)

var errNotLinux = exitcode.AsAbsent(errors.New("network namespaces exist on Linux only; run it there or in a virtual machine"))

// CanUseNamespaces returns an error: network namespaces are Linux's.
func CanUseNamespaces() error { return errNotLinux }

// InNamespaces returns an error: network namespaces are Linux's.
func InNamespaces(context.Context, string, Config, func(done, total int)) (Testbed, error) {
	return nil, errNotLinux
}

// InGraph returns an error: network namespaces are Linux's.
func InGraph(context.Context, string, Config, []string, []string, func(done, total int)) (Testbed, error) {
	return nil, errNotLinux
}
