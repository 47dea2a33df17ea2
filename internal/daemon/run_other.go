//go:build !linux

package daemon

import (
	"context"
	"errors"
	"io"
	"os"

	"weft/internal/exitcode"
)

var errLinuxOnly = exitcode.AsAbsent(errors.New("host: needs the routing rules, TUN and eBPF of Linux; elsewhere, programs can embed package stack"))

// Run fails: weft host is for Linux.
func Run(context.Context, string, <-chan os.Signal, io.Writer) error { return errLinuxOnly }

// Cleanup fails, as Run does.
func Cleanup() ([]string, error) { return nil, errLinuxOnly }

// StatusSocket fails, as Run does.
func StatusSocket() (string, error) { return "", errLinuxOnly }
