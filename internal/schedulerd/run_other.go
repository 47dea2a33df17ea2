//go:build !linux

package schedulerd

import (
	"context"
	"errors"
	"io"
	"os"

	"weft/internal/exitcode"
)

var errLinuxOnly = exitcode.AsAbsent(errors.New("scheduler: runs on Linux alone, as weft's other daemons do"))

// Run fails: weft scheduler is for Linux.
func Run(context.Context, string, <-chan os.Signal, io.Writer) error { return errLinuxOnly }

// StatusSocket fails, as Run does.
func StatusSocket() (string, error) { return "", errLinuxOnly }
