//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newBenchFaultsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "faults",
		Short: "Do status, blame and doctor name what is broken? (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("bench faults: needs the network namespaces of Linux; run it there or in a virtual machine")
		},
	}
}
