//go:build !linux

package testbed

import (
	"context"
	"errors"
)

var errNotLinux = errors.New("network namespaces exist on Linux only")

// CanUseNamespaces returns an error: network namespaces are Linux's.
func CanUseNamespaces() error { return errNotLinux }

// InNamespaces returns an error: network namespaces are Linux's.
func InNamespaces(context.Context, string, Config, func(done, total int)) (Testbed, error) {
	return nil, errNotLinux
}
