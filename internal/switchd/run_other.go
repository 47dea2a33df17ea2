//go:build !linux

package switchd

import (
	"context"
	"errors"
	"io"
	"os"

	"weft/internal/exitcode"
)

var errLinuxOnly = exitcode.AsAbsent(errors.New("switch: needs Linux's netlink; elsewhere, weft plan prints how to configure a switch"))

// Run fails: weft switch is for Linux.
func Run(context.Context, string, <-chan os.Signal, io.Writer) error { return errLinuxOnly }

// StatusSocket fails, as Run does.
func StatusSocket() (string, error) { return "", errLinuxOnly }
