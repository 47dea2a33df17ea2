//go:build !linux

package testbed

import (
	"context"
	"errors"
)

// InNamespaces returns an error: network namespaces are Linux's.
func InNamespaces(context.Context, string, Config, func(done, total int)) (Testbed, error) {
	return nil, errors.New("network namespaces exist on Linux only; use the in-memory fabric")
}
