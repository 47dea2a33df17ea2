//go:build !linux

package main

import (
	"context"
	"errors"
)

func measure(context.Context, options, func(result)) error {
	return errors.New("the fabric is one of network namespaces, which only Linux has")
}
